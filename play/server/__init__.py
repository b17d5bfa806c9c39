"""The game server: games over HTTP and WebSocket, and the web page.

    messages     what travels: every body and message as a typed structure, checked when it is read
    options      the limits of a server
    addresses    whom they are counted by
    catalogue    the agents that a stranger may name, and what they may ask for
    worker, pool searches in processes of their own, and whose is next; analysis and reading: what they do for visitors
    store        games in SQLite, written before anybody is told of a move; all SQL
    clock, room  one game that people are connected to: seats, moves, time
    hall         all games
    endpoints, sockets, openapi, app, running    HTTP, WebSockets, their description, the application, the process

Everything but the searches and the database runs in one event loop and never waits there.
"""
