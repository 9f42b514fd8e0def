package locale

// bulkWords are what the console says after a verb, about jobs over many records, and
// about files that are imported.
var bulkWords = map[string]texts{
	"work.undo":       {"Undo", "撤销", "復原", "Annuler l’action", "Rückgängig", "Deshacer"},
	"work.undone":     {"Taken back: %s", "已撤销：%s", "已復原：%s", "Annulé : %s", "Zurückgenommen: %s", "Deshecho: %s"},
	"work.undo.late":  {"The time to take this back is over. Nothing was changed.", "撤销时限已过，未作任何更改。", "復原時限已過，未作任何變更。", "Le délai d’annulation est passé. Rien n’a été modifié.", "Die Zeit zum Zurücknehmen ist vorbei. Nichts wurde geändert.", "El plazo para deshacer ha pasado. No se cambió nada."},
	"work.undo.moved": {"The record has changed since. Nothing was taken back: look at it and decide again.", "此后记录已变更，未撤销任何内容。请查看后再决定。", "此後紀錄已變更，未復原任何內容。請檢視後再決定。", "L’enregistrement a changé depuis. Rien n’a été annulé : regardez-le et décidez à nouveau.", "Der Datensatz hat sich seitdem geändert. Nichts wurde zurückgenommen: Sehen Sie ihn an und entscheiden Sie neu.", "El registro ha cambiado desde entonces. No se deshizo nada: revíselo y decida de nuevo."},
	"work.told":       {"Notified: %s", "已通知：%s", "已通知：%s", "Informés : %s", "Benachrichtigt: %s", "Avisados: %s"},
	"work.told.none":  {"No receiver is notified.", "未通知任何接收方。", "未通知任何接收方。", "Aucun destinataire n’est informé.", "Kein Empfänger wird benachrichtigt.", "No se avisa a ningún destinatario."},
	"work.auditline":  {"Audit line", "审计记录", "稽核紀錄", "Ligne d’audit", "Protokollzeile", "Línea de auditoría"},
	"notice.webhook":  {"webhook endpoints: %d", "Webhook 端点：%d", "Webhook 端點：%d", "points de terminaison webhook : %d", "Webhook-Endpunkte: %d", "puntos de webhook: %d"},
	"notice.mail":     {"mails: %d", "邮件：%d", "郵件：%d", "e-mails : %d", "E-Mails: %d", "correos: %d"},
	"notice.push":     {"drivers: %d", "司机：%d", "司機：%d", "livreurs : %d", "Fahrer: %d", "conductores: %d"},
	"notice.chat":     {"order chats: %d", "订单会话：%d", "訂單對話：%d", "discussions de commande : %d", "Auftrags-Chats: %d", "chats de pedido: %d"},
	"notice.cabinet":  {"cabinets: %d", "快递柜：%d", "智慧櫃：%d", "consignes : %d", "Schränke: %d", "taquillas: %d"},
	"work.result":     {"Result", "结果", "結果", "Résultat", "Ergebnis", "Resultado"},
	"work.meanwhile":  {"Someone else changed this while you had it open. Look at the difference and decide again.", "在您打开期间，其他人更改了此记录。请查看差异后再决定。", "在您開啟期間，其他人變更了此紀錄。請檢視差異後再決定。", "Une autre personne a modifié ceci pendant que vous l’aviez ouvert. Regardez la différence et décidez à nouveau.", "Eine andere Person hat dies geändert, während Sie es offen hatten. Sehen Sie den Unterschied an und entscheiden Sie neu.", "Otra persona cambió esto mientras lo tenía abierto. Revise la diferencia y decida de nuevo."},
	"work.diff.was":   {"When you opened it", "打开时", "開啟時", "À l’ouverture", "Beim Öffnen", "Al abrirlo"},
	"work.diff.now":   {"Now", "现在", "現在", "Maintenant", "Jetzt", "Ahora"},
	"work.diff.yours": {"Yours", "您的输入", "您的輸入", "Votre saisie", "Ihre Eingabe", "Lo suyo"},
}
