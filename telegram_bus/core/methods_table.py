"""What the Bot API's documentation says of the methods that followers may call; made by a program.

A method or type is a line of fields: `name:kind`, or `name!:kind` for one that is required. Kinds: `int`, `float`,
`str`, `bool`, `true`, `file` (a file id, an address or an attachment), `'text'` (only this text), `any`, the name of
a type, `[kind]` for a list, and `a|b` for one of several. A line that begins with `=` is one of several types.

Made by `python -m tests.clients.method_table` from the documentation as aiogram's source carries it.
"""

from __future__ import annotations

from typing import Final

__all__ = ["BOT_API", "METHODS", "OTHERS", "TYPES"]

BOT_API: Final = "10.3"
"""The version of the documentation."""

OTHERS: Final = """
addStickerToSet answerChatJoinRequestQuery answerGuestQuery answerInlineQuery answerPreCheckoutQuery
answerShippingQuery answerWebAppQuery approveChatJoinRequest approveSuggestedPost banChatMember banChatSenderChat
close closeGeneralForumTopic convertGiftToStars copyMessages createChatInviteLink createChatSubscriptionInviteLink
createForumTopic createInvoiceLink createNewStickerSet declineChatJoinRequest declineSuggestedPost
deleteAllMessageReactions deleteBusinessMessages deleteChatPhoto deleteChatStickerSet deleteEphemeralMessage
deleteMessageReaction deleteMessages deleteStickerFromSet deleteStickerSet deleteStory deleteWebhook
editChatInviteLink editChatSubscriptionInviteLink editEphemeralMessageCaption editEphemeralMessageMedia
editEphemeralMessageReplyMarkup editEphemeralMessageText editGeneralForumTopic editMessageChecklist
editMessageLiveLocation editStory editUserStarSubscription exportChatInviteLink forwardMessage forwardMessages
getAvailableGifts getBusinessAccountGifts getBusinessAccountStarBalance getBusinessConnection getChat
getChatAdministrators getChatGifts getChatMember getChatMemberCount getChatMenuButton getCustomEmojiStickers getFile
getForumTopicIconStickers getGameHighScores getManagedBotAccessSettings getManagedBotToken
getMyDefaultAdministratorRights getMyDescription getMyName getMyShortDescription getMyStarBalance
getStarTransactions getStickerSet getUpdates getUserChatBoosts getUserGifts getUserPersonalChatMessages
getUserProfileAudios getUserProfilePhotos getWebhookInfo giftPremiumSubscription hideGeneralForumTopic leaveChat
logOut pinChatMessage postStory promoteChatMember readBusinessMessage refundStarPayment
removeBusinessAccountProfilePhoto removeChatVerification removeMyProfilePhoto removeUserVerification
reopenForumTopic reopenGeneralForumTopic replaceManagedBotToken replaceStickerInSet repostStory restrictChatMember
revokeChatInviteLink savePreparedInlineMessage savePreparedKeyboardButton sendChatJoinRequestWebApp sendChecklist
sendContact sendDice sendGame sendGift sendInvoice sendLivePhoto sendPaidMedia sendPoll sendSticker sendVenue
sendVideoNote setBusinessAccountBio setBusinessAccountGiftSettings setBusinessAccountName
setBusinessAccountProfilePhoto setBusinessAccountUsername setChatAdministratorCustomTitle setChatDescription
setChatMemberTag setChatMenuButton setChatPermissions setChatPhoto setChatStickerSet setChatTitle
setCustomEmojiStickerSetThumbnail setGameScore setManagedBotAccessSettings setMyDefaultAdministratorRights
setMyDescription setMyName setMyProfilePhoto setMyShortDescription setPassportDataErrors setStickerEmojiList
setStickerKeywords setStickerMaskPosition setStickerPositionInSet setStickerSetThumbnail setStickerSetTitle
setUserEmojiStatus setWebhook stopMessageLiveLocation stopPoll transferBusinessAccountStars transferGift
unbanChatMember unbanChatSenderChat unhideGeneralForumTopic unpinAllChatMessages unpinAllForumTopicMessages
unpinAllGeneralForumTopicMessages unpinChatMessage upgradeGift uploadStickerFile verifyChat verifyUser
"""
"""The methods that they may not call."""

METHODS: Final[dict[str, str]] = {
    "answerCallbackQuery": ("callback_query_id!:str text:str show_alert:bool url:str cache_time:int"),
    "closeForumTopic": ("chat_id!:int|str message_thread_id!:int"),
    "copyMessage": (
        "chat_id!:int|str message_thread_id:int direct_messages_topic_id:int from_chat_id!:int|str "
        "message_id!:int video_start_timestamp:int caption:str parse_mode:str "
        "caption_entities:[MessageEntity] show_caption_above_media:bool disable_notification:bool "
        "protect_content:bool allow_paid_broadcast:bool message_effect_id:str "
        "suggested_post_parameters:SuggestedPostParameters reply_parameters:ReplyParameters "
        "reply_markup:InlineKeyboardMarkup|ReplyKeyboardMarkup|ReplyKeyboardRemove|ForceReply"
    ),
    "deleteForumTopic": ("chat_id!:int|str message_thread_id!:int"),
    "deleteMessage": ("chat_id!:int|str message_id!:int"),
    "deleteMyCommands": ("scope:BotCommandScope language_code:str"),
    "editForumTopic": ("chat_id!:int|str message_thread_id!:int name:str icon_custom_emoji_id:str"),
    "editMessageCaption": (
        "business_connection_id:str chat_id:int|str message_id:int inline_message_id:str caption:str "
        "parse_mode:str caption_entities:[MessageEntity] show_caption_above_media:bool "
        "reply_markup:InlineKeyboardMarkup"
    ),
    "editMessageMedia": (
        "business_connection_id:str chat_id:int|str message_id:int inline_message_id:str media!:InputMedia "
        "reply_markup:InlineKeyboardMarkup"
    ),
    "editMessageReplyMarkup": (
        "business_connection_id:str chat_id:int|str message_id:int inline_message_id:str "
        "reply_markup:InlineKeyboardMarkup"
    ),
    "editMessageText": (
        "business_connection_id:str chat_id:int|str message_id:int inline_message_id:str text:str "
        "parse_mode:str entities:[MessageEntity] link_preview_options:LinkPreviewOptions "
        "rich_message:InputRichMessage reply_markup:InlineKeyboardMarkup"
    ),
    "getMe": (""),
    "getMyCommands": ("scope:BotCommandScope language_code:str"),
    "sendAnimation": (
        "business_connection_id:str chat_id!:int|str message_thread_id:int direct_messages_topic_id:int "
        "ephemeral_message_parameters:EphemeralMessageParameters animation!:file duration:int width:int "
        "height:int thumbnail:file caption:str parse_mode:str caption_entities:[MessageEntity] "
        "show_caption_above_media:bool has_spoiler:bool disable_notification:bool protect_content:bool "
        "allow_paid_broadcast:bool message_effect_id:str suggested_post_parameters:SuggestedPostParameters "
        "reply_parameters:ReplyParameters "
        "reply_markup:InlineKeyboardMarkup|ReplyKeyboardMarkup|ReplyKeyboardRemove|ForceReply"
    ),
    "sendAudio": (
        "business_connection_id:str chat_id!:int|str message_thread_id:int direct_messages_topic_id:int "
        "ephemeral_message_parameters:EphemeralMessageParameters audio!:file caption:str parse_mode:str "
        "caption_entities:[MessageEntity] duration:int performer:str title:str thumbnail:file "
        "disable_notification:bool protect_content:bool allow_paid_broadcast:bool message_effect_id:str "
        "suggested_post_parameters:SuggestedPostParameters reply_parameters:ReplyParameters "
        "reply_markup:InlineKeyboardMarkup|ReplyKeyboardMarkup|ReplyKeyboardRemove|ForceReply"
    ),
    "sendChatAction": ("business_connection_id:str chat_id!:int|str message_thread_id:int action!:str"),
    "sendDocument": (
        "business_connection_id:str chat_id!:int|str message_thread_id:int direct_messages_topic_id:int "
        "ephemeral_message_parameters:EphemeralMessageParameters document!:file thumbnail:file caption:str "
        "parse_mode:str caption_entities:[MessageEntity] disable_content_type_detection:bool "
        "disable_notification:bool protect_content:bool allow_paid_broadcast:bool message_effect_id:str "
        "suggested_post_parameters:SuggestedPostParameters reply_parameters:ReplyParameters "
        "reply_markup:InlineKeyboardMarkup|ReplyKeyboardMarkup|ReplyKeyboardRemove|ForceReply"
    ),
    "sendLocation": (
        "business_connection_id:str chat_id!:int|str message_thread_id:int direct_messages_topic_id:int "
        "ephemeral_message_parameters:EphemeralMessageParameters latitude!:float longitude!:float "
        "horizontal_accuracy:float live_period:int heading:int proximity_alert_radius:int "
        "disable_notification:bool protect_content:bool allow_paid_broadcast:bool message_effect_id:str "
        "suggested_post_parameters:SuggestedPostParameters reply_parameters:ReplyParameters "
        "reply_markup:InlineKeyboardMarkup|ReplyKeyboardMarkup|ReplyKeyboardRemove|ForceReply"
    ),
    "sendMediaGroup": (
        "business_connection_id:str chat_id!:int|str message_thread_id:int direct_messages_topic_id:int "
        "media!:[InputMediaAudio|InputMediaDocument|InputMediaLivePhoto|InputMediaPhoto|InputMediaVideo] "
        "disable_notification:bool protect_content:bool allow_paid_broadcast:bool message_effect_id:str "
        "reply_parameters:ReplyParameters"
    ),
    "sendMessage": (
        "business_connection_id:str chat_id!:int|str message_thread_id:int direct_messages_topic_id:int "
        "ephemeral_message_parameters:EphemeralMessageParameters text!:str parse_mode:str "
        "entities:[MessageEntity] link_preview_options:LinkPreviewOptions disable_notification:bool "
        "protect_content:bool allow_paid_broadcast:bool message_effect_id:str "
        "suggested_post_parameters:SuggestedPostParameters reply_parameters:ReplyParameters "
        "reply_markup:InlineKeyboardMarkup|ReplyKeyboardMarkup|ReplyKeyboardRemove|ForceReply"
    ),
    "sendMessageDraft": (
        "chat_id!:int message_thread_id:int draft_id!:int text:str parse_mode:str entities:[MessageEntity] "
        "can_stop:bool keep_on_stop:bool"
    ),
    "sendPhoto": (
        "business_connection_id:str chat_id!:int|str message_thread_id:int direct_messages_topic_id:int "
        "ephemeral_message_parameters:EphemeralMessageParameters photo!:file caption:str parse_mode:str "
        "caption_entities:[MessageEntity] show_caption_above_media:bool has_spoiler:bool "
        "disable_notification:bool protect_content:bool allow_paid_broadcast:bool message_effect_id:str "
        "suggested_post_parameters:SuggestedPostParameters reply_parameters:ReplyParameters "
        "reply_markup:InlineKeyboardMarkup|ReplyKeyboardMarkup|ReplyKeyboardRemove|ForceReply"
    ),
    "sendRichMessage": (
        "business_connection_id:str chat_id!:int|str message_thread_id:int direct_messages_topic_id:int "
        "ephemeral_message_parameters:EphemeralMessageParameters rich_message!:InputRichMessage "
        "disable_notification:bool protect_content:bool allow_paid_broadcast:bool message_effect_id:str "
        "suggested_post_parameters:SuggestedPostParameters reply_parameters:ReplyParameters "
        "reply_markup:InlineKeyboardMarkup|ReplyKeyboardMarkup|ReplyKeyboardRemove|ForceReply"
    ),
    "sendRichMessageDraft": (
        "chat_id!:int message_thread_id:int draft_id!:int rich_message!:InputRichMessage can_stop:bool "
        "keep_on_stop:bool"
    ),
    "sendVideo": (
        "business_connection_id:str chat_id!:int|str message_thread_id:int direct_messages_topic_id:int "
        "ephemeral_message_parameters:EphemeralMessageParameters video!:file duration:int width:int "
        "height:int thumbnail:file cover:file start_timestamp:int caption:str parse_mode:str "
        "caption_entities:[MessageEntity] show_caption_above_media:bool has_spoiler:bool "
        "supports_streaming:bool disable_notification:bool protect_content:bool allow_paid_broadcast:bool "
        "message_effect_id:str suggested_post_parameters:SuggestedPostParameters "
        "reply_parameters:ReplyParameters "
        "reply_markup:InlineKeyboardMarkup|ReplyKeyboardMarkup|ReplyKeyboardRemove|ForceReply"
    ),
    "sendVoice": (
        "business_connection_id:str chat_id!:int|str message_thread_id:int direct_messages_topic_id:int "
        "ephemeral_message_parameters:EphemeralMessageParameters voice!:file caption:str parse_mode:str "
        "caption_entities:[MessageEntity] duration:int disable_notification:bool protect_content:bool "
        "allow_paid_broadcast:bool message_effect_id:str suggested_post_parameters:SuggestedPostParameters "
        "reply_parameters:ReplyParameters "
        "reply_markup:InlineKeyboardMarkup|ReplyKeyboardMarkup|ReplyKeyboardRemove|ForceReply"
    ),
    "setMessageReaction": ("chat_id!:int|str message_id!:int reaction:[ReactionType] is_big:bool"),
    "setMyCommands": ("commands!:[BotCommand] scope:BotCommandScope language_code:str"),
}

TYPES: Final[dict[str, str]] = {
    "BotCommand": ("command!:str description!:str is_ephemeral:bool"),
    "BotCommandScope": (
        "=BotCommandScopeDefault|BotCommandScopeAllPrivateChats|BotCommandScopeAllGroupChats|BotCommandScopeAllChatAdministrators|BotCommandScopeChat|BotCommandScopeChatAdministrators|BotCommandScopeChatMember"
    ),
    "BotCommandScopeAllChatAdministrators": ("type!:'all_chat_administrators'"),
    "BotCommandScopeAllGroupChats": ("type!:'all_group_chats'"),
    "BotCommandScopeAllPrivateChats": ("type!:'all_private_chats'"),
    "BotCommandScopeChat": ("type!:'chat' chat_id!:int|str"),
    "BotCommandScopeChatAdministrators": ("type!:'chat_administrators' chat_id!:int|str"),
    "BotCommandScopeChatMember": ("type!:'chat_member' chat_id!:int|str user_id!:int"),
    "BotCommandScopeDefault": ("type!:'default'"),
    "CallbackGame": (""),
    "ChatAdministratorRights": (
        "is_anonymous!:bool can_manage_chat!:bool can_delete_messages!:bool can_manage_video_chats!:bool "
        "can_restrict_members!:bool can_promote_members!:bool can_change_info!:bool can_invite_users!:bool "
        "can_post_stories!:bool can_edit_stories!:bool can_delete_stories!:bool can_post_messages:bool "
        "can_edit_messages:bool can_pin_messages:bool can_manage_topics:bool can_manage_direct_messages:bool "
        "can_manage_tags:bool can_send_welcome_messages!:bool"
    ),
    "CopyTextButton": ("text!:str"),
    "DisabledButton": (""),
    "EphemeralMessageParameters": ("receiver_user_id!:int callback_query_id:str replace_callback_query_message:bool"),
    "ForceReply": ("force_reply!:true input_field_placeholder:str selective:bool"),
    "InlineKeyboardButton": (
        "text!:str icon_custom_emoji_id:str style:str url:str callback_data:str web_app:WebAppInfo "
        "login_url:LoginUrl switch_inline_query:str switch_inline_query_current_chat:str "
        "switch_inline_query_chosen_chat:SwitchInlineQueryChosenChat copy_text:CopyTextButton "
        "callback_game:CallbackGame pay:bool disabled:DisabledButton"
    ),
    "InlineKeyboardMarkup": ("inline_keyboard!:[[InlineKeyboardButton]] force_reply:bool"),
    "InputMedia": (
        "=InputMediaAnimation|InputMediaAudio|InputMediaDocument|InputMediaLivePhoto|InputMediaPhoto|InputMediaVideo"
    ),
    "InputMediaAnimation": (
        "type!:'animation' media!:file thumbnail:file caption:str parse_mode:str "
        "caption_entities:[MessageEntity] show_caption_above_media:bool width:int height:int duration:int "
        "has_spoiler:bool"
    ),
    "InputMediaAudio": (
        "type!:'audio' media!:file thumbnail:file caption:str parse_mode:str caption_entities:[MessageEntity]"
        " duration:int performer:str title:str"
    ),
    "InputMediaDocument": (
        "type!:'document' media!:file thumbnail:file caption:str parse_mode:str "
        "caption_entities:[MessageEntity] disable_content_type_detection:bool"
    ),
    "InputMediaLivePhoto": (
        "type!:'live_photo' media!:file photo!:file caption:str parse_mode:str "
        "caption_entities:[MessageEntity] show_caption_above_media:bool has_spoiler:bool"
    ),
    "InputMediaPhoto": (
        "type!:'photo' media!:file caption:str parse_mode:str caption_entities:[MessageEntity] "
        "show_caption_above_media:bool has_spoiler:bool"
    ),
    "InputMediaVideo": (
        "type!:'video' media!:file thumbnail:file cover:file start_timestamp:int caption:str parse_mode:str "
        "caption_entities:[MessageEntity] show_caption_above_media:bool width:int height:int duration:int "
        "supports_streaming:bool has_spoiler:bool"
    ),
    "InputMediaVoiceNote": (
        "type!:'voice_note' media!:file caption:str parse_mode:str caption_entities:[MessageEntity] duration:int"
    ),
    "InputRichBlock": (
        "=InputRichBlockParagraph|InputRichBlockSectionHeading|InputRichBlockPreformatted|InputRichBlockFooter|InputRichBlockDivider|InputRichBlockMathematicalExpression|InputRichBlockAnchor|InputRichBlockList|InputRichBlockBlockQuotation|InputRichBlockExpandableBlockQuotation|InputRichBlockPullQuotation|InputRichBlockCollage|InputRichBlockSlideshow|InputRichBlockTable|InputRichBlockDetails|InputRichBlockMap|InputRichBlockButtons|InputRichBlockAnimation|InputRichBlockAudio|InputRichBlockDocument|InputRichBlockPhoto|InputRichBlockVideo|InputRichBlockVoiceNote|InputRichBlockThinking"
    ),
    "InputRichBlockAnchor": ("type!:'anchor' name!:str"),
    "InputRichBlockAnimation": ("type!:'animation' animation!:InputMediaAnimation caption:RichBlockCaption"),
    "InputRichBlockAudio": ("type!:'audio' audio!:InputMediaAudio caption:RichBlockCaption"),
    "InputRichBlockBlockQuotation": ("type!:'blockquote' blocks!:[InputRichBlock] credit:RichText"),
    "InputRichBlockButtons": ("type!:'buttons' buttons!:[RichMessageButton] align:str"),
    "InputRichBlockCollage": ("type!:'collage' blocks!:[InputRichBlock] caption:RichBlockCaption"),
    "InputRichBlockDetails": ("type!:'details' summary!:RichText blocks!:[InputRichBlock] is_open:true"),
    "InputRichBlockDivider": ("type!:'divider'"),
    "InputRichBlockDocument": ("type!:'document' document!:InputMediaDocument caption:RichBlockCaption"),
    "InputRichBlockExpandableBlockQuotation": ("type!:'expandable_blockquote' text!:RichText credit:RichText"),
    "InputRichBlockFooter": ("type!:'footer' text!:RichText"),
    "InputRichBlockList": ("type!:'list' items!:[InputRichBlockListItem]"),
    "InputRichBlockListItem": ("blocks!:[InputRichBlock] has_checkbox:true is_checked:true value:int type:str"),
    "InputRichBlockMap": ("type!:'map' location!:Location zoom:int width:int height:int caption:RichBlockCaption"),
    "InputRichBlockMathematicalExpression": ("type!:'mathematical_expression' expression!:str"),
    "InputRichBlockParagraph": ("type!:'paragraph' text!:RichText"),
    "InputRichBlockPhoto": ("type!:'photo' photo!:InputMediaPhoto caption:RichBlockCaption"),
    "InputRichBlockPreformatted": ("type!:'pre' text!:RichText language:str"),
    "InputRichBlockPullQuotation": ("type!:'pullquote' text!:RichText credit:RichText"),
    "InputRichBlockSectionHeading": ("type!:'heading' text!:RichText size!:int"),
    "InputRichBlockSlideshow": ("type!:'slideshow' blocks!:[InputRichBlock] caption:RichBlockCaption"),
    "InputRichBlockTable": (
        "type!:'table' cells!:[[RichBlockTableCell]] is_bordered:true is_striped:true is_compact:true caption:RichText"
    ),
    "InputRichBlockThinking": ("type!:'thinking' text!:RichText"),
    "InputRichBlockVideo": ("type!:'video' video!:InputMediaVideo caption:RichBlockCaption"),
    "InputRichBlockVoiceNote": ("type!:'voice_note' voice_note!:InputMediaVoiceNote caption:RichBlockCaption"),
    "InputRichMessage": (
        "blocks:[InputRichBlock] html:str markdown:str media:[InputRichMessageMedia] is_rtl:bool "
        "skip_entity_detection:bool"
    ),
    "InputRichMessageMedia": (
        "id!:str "
        "media!:InputMediaAnimation|InputMediaAudio|InputMediaDocument|InputMediaPhoto|InputMediaVideo|InputMediaVoiceNote"
    ),
    "KeyboardButton": (
        "text!:str icon_custom_emoji_id:str style:str request_users:KeyboardButtonRequestUsers "
        "request_chat:KeyboardButtonRequestChat request_managed_bot:KeyboardButtonRequestManagedBot "
        "request_contact:bool request_location:bool request_poll:KeyboardButtonPollType web_app:WebAppInfo"
    ),
    "KeyboardButtonPollType": ("type:str"),
    "KeyboardButtonRequestChat": (
        "request_id!:int chat_is_channel!:bool chat_is_forum:bool chat_has_username:bool chat_is_created:bool"
        " user_administrator_rights:ChatAdministratorRights bot_administrator_rights:ChatAdministratorRights "
        "bot_is_member:bool request_title:bool request_username:bool request_photo:bool"
    ),
    "KeyboardButtonRequestManagedBot": ("request_id!:int suggested_name:str suggested_username:str"),
    "KeyboardButtonRequestUsers": (
        "request_id!:int user_is_bot:bool user_is_premium:bool max_quantity:int request_name:bool "
        "request_username:bool request_photo:bool"
    ),
    "LinkPreviewOptions": (
        "is_disabled:bool url:str prefer_small_media:bool prefer_large_media:bool show_above_text:bool"
    ),
    "Location": (
        "latitude!:float longitude!:float horizontal_accuracy:float live_period:int heading:int "
        "proximity_alert_radius:int"
    ),
    "LoginUrl": ("url!:str forward_text:str bot_username:str request_write_access:bool"),
    "MessageEntity": (
        "type!:str offset!:int length!:int url:str user:User language:str custom_emoji_id:str unix_time:int "
        "date_time_format:str"
    ),
    "ReactionType": ("=ReactionTypeEmoji|ReactionTypeCustomEmoji|ReactionTypePaid"),
    "ReactionTypeCustomEmoji": ("type!:'custom_emoji' custom_emoji_id!:str"),
    "ReactionTypeEmoji": ("type!:'emoji' emoji!:str"),
    "ReactionTypePaid": ("type!:'paid'"),
    "ReplyKeyboardMarkup": (
        "keyboard!:[[str|KeyboardButton]] is_persistent:bool resize_keyboard:bool one_time_keyboard:bool "
        "input_field_placeholder:str selective:bool force_reply:bool"
    ),
    "ReplyKeyboardRemove": ("remove_keyboard!:true selective:bool"),
    "ReplyParameters": (
        "message_id:int chat_id:int|str ephemeral_message_id:int allow_sending_without_reply:bool quote:str "
        "quote_parse_mode:str quote_entities:[MessageEntity] quote_position:int checklist_task_id:int "
        "poll_option_id:str"
    ),
    "RichBlockCaption": ("text!:RichText credit:RichText"),
    "RichBlockTableCell": ("text:RichText is_header:true colspan:int rowspan:int align!:str valign!:str"),
    "RichMessageButton": (
        "text!:RichText style:str url:str callback_data:str web_app:WebAppInfo login_url:LoginUrl "
        "switch_inline_query:str switch_inline_query_current_chat:str "
        "switch_inline_query_chosen_chat:SwitchInlineQueryChosenChat copy_text:CopyTextButton "
        "disabled:DisabledButton"
    ),
    "RichText": (
        "=str|[RichText]|RichTextBold|RichTextItalic|RichTextUnderline|RichTextStrikethrough|RichTextSpoiler|RichTextDateTime|RichTextTextMention|RichTextSubscript|RichTextSuperscript|RichTextMarked|RichTextCode|RichTextCustomEmoji|RichTextMathematicalExpression|RichTextUrl|RichTextEmailAddress|RichTextPhoneNumber|RichTextBankCardNumber|RichTextMention|RichTextHashtag|RichTextCashtag|RichTextBotCommand|RichTextButton|RichTextAnchor|RichTextAnchorLink|RichTextReference|RichTextReferenceLink"
    ),
    "RichTextAnchor": ("type!:'anchor' name!:str"),
    "RichTextAnchorLink": ("type!:'anchor_link' text!:RichText anchor_name!:str"),
    "RichTextBankCardNumber": ("type!:'bank_card_number' text!:RichText bank_card_number!:str"),
    "RichTextBold": ("type!:'bold' text!:RichText"),
    "RichTextBotCommand": ("type!:'bot_command' text!:RichText bot_command!:str"),
    "RichTextButton": ("type!:'button' button!:RichMessageButton"),
    "RichTextCashtag": ("type!:'cashtag' text!:RichText cashtag!:str"),
    "RichTextCode": ("type!:'code' text!:RichText"),
    "RichTextCustomEmoji": ("type!:'custom_emoji' custom_emoji_id!:str alternative_text!:str"),
    "RichTextDateTime": ("type!:'date_time' text!:RichText unix_time!:int date_time_format!:str"),
    "RichTextEmailAddress": ("type!:'email_address' text!:RichText email_address!:str"),
    "RichTextHashtag": ("type!:'hashtag' text!:RichText hashtag!:str"),
    "RichTextItalic": ("type!:'italic' text!:RichText"),
    "RichTextMarked": ("type!:'marked' text!:RichText"),
    "RichTextMathematicalExpression": ("type!:'mathematical_expression' expression!:str"),
    "RichTextMention": ("type!:'mention' text!:RichText username!:str"),
    "RichTextPhoneNumber": ("type!:'phone_number' text!:RichText phone_number!:str"),
    "RichTextReference": ("type!:'reference' text!:RichText name!:str"),
    "RichTextReferenceLink": ("type!:'reference_link' text!:RichText reference_name!:str"),
    "RichTextSpoiler": ("type!:'spoiler' text!:RichText"),
    "RichTextStrikethrough": ("type!:'strikethrough' text!:RichText"),
    "RichTextSubscript": ("type!:'subscript' text!:RichText"),
    "RichTextSuperscript": ("type!:'superscript' text!:RichText"),
    "RichTextTextMention": ("type!:'text_mention' text!:RichText user!:User"),
    "RichTextUnderline": ("type!:'underline' text!:RichText"),
    "RichTextUrl": ("type!:'url' text!:RichText url!:str"),
    "SuggestedPostParameters": ("price:SuggestedPostPrice send_date:int"),
    "SuggestedPostPrice": ("currency!:str amount!:int"),
    "SwitchInlineQueryChosenChat": (
        "query:str allow_user_chats:bool allow_bot_chats:bool allow_group_chats:bool allow_channel_chats:bool"
    ),
    "User": (
        "id!:int is_bot:bool first_name:str last_name:str username:str language_code:str is_premium:true "
        "added_to_attachment_menu:true can_join_groups:bool can_read_all_group_messages:bool "
        "supports_guest_queries:bool supports_inline_queries:bool can_connect_to_business:bool "
        "has_main_web_app:bool has_topics_enabled:bool allows_users_to_create_topics:bool "
        "can_manage_bots:bool supports_join_request_queries:bool"
    ),
    "WebAppInfo": ("url!:str"),
}
