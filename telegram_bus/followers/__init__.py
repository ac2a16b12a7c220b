"""What a follower's program is given and gives: updates, messages, the other members."""
