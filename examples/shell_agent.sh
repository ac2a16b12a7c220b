#!/bin/sh
# An agent in shell, which knows nothing of Telegram: lines come in, lines go out. Run it with
#   telegram-bus follower --name shell -- sh examples/shell_agent.sh
echo "Here I am. Say: date, free, or bye"
while read -r word rest; do
    case "$word" in
        date) date ;;
        free) df -h . ;;
        bye) echo "Until next time."; exit 0 ;;
        *) echo "You said: $word $rest" ;;
    esac
done
