"""The game server: games over HTTP and WebSocket, and the web page.

    messages, options, addresses, catalogue    message classes; limits; names of clients; agents on offer
    http       the application, its endpoints and WebSockets, their description, the server process
    games      the hall of all games, rooms with connected people, clocks, the SQLite store
    workers    search processes and the order of searches; analysis, reading of games, compilation in the background

Everything but searches and the database runs in one event loop and never blocks it.
"""
