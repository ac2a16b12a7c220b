"""A pytest plugin for pyTelegramBotAPI's suite: its bots talk to the sandbox at API_ROOT."""

from __future__ import annotations

import os

from telebot import apihelper

apihelper.API_URL = os.environ["API_ROOT"] + "/bot{0}/{1}"
apihelper.FILE_URL = os.environ["API_ROOT"] + "/file/bot{0}/{1}"
