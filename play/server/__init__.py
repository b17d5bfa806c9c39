"""The game server: games over HTTP and WebSocket, and the web page, in an event loop that nothing blocks.

    messages, options, addresses, catalogue    message classes; limits; names of clients; agents on offer
    http       the application, its endpoints and WebSockets, their description, the server process
    games      the hall of all games, rooms with connected people, clocks, the SQLite store
    workers    search processes and the order of searches; analysis, reading of games, compilation in the background
"""
