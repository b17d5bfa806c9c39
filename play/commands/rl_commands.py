"""`reversi rl` with its commands: train, `expert` and `exam`."""

from __future__ import annotations

from play.commands.expert import expert
from play.commands.rl import app
from play.commands.rl_exam import exam

app.command("expert")(expert)
app.command("exam")(exam)
