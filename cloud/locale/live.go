package locale

// liveWords are what pages say about being kept up to date, and what the home page says
// about what happened. {} stands for a time or a list of names.
var liveWords = map[string]texts{
	"live.on":      {"Live, confirmed {}", "实时，{} 确认", "即時，{} 確認", "En direct, confirmé à {}", "Live, bestätigt {}", "En vivo, confirmado a las {}"},
	"live.polled":  {"Checked every 30 seconds, last at {}", "每 30 秒检查一次，上次 {}", "每 30 秒檢查一次，上次 {}", "Vérifié toutes les 30 secondes, dernière fois à {}", "Alle 30 Sekunden geprüft, zuletzt {}", "Se comprueba cada 30 segundos, última vez a las {}"},
	"live.lost":    {"Not connected since {}. This may be old.", "自 {} 起未连接。内容可能已过时。", "自 {} 起未連線。內容可能已過時。", "Non connecté depuis {}. Ces données sont peut-être anciennes.", "Nicht verbunden seit {}. Das kann veraltet sein.", "Sin conexión desde las {}. Esto puede estar anticuado."},
	"live.updated": {"Updated: {}", "已更新：{}", "已更新：{}", "Mis à jour : {}", "Aktualisiert: {}", "Actualizado: {}"},
	"now.title":    {"Just now", "刚刚", "剛剛", "À l’instant", "Gerade eben", "Ahora mismo"},
	"now.all":      {"All events", "全部事件", "全部事件", "Tous les événements", "Alle Ereignisse", "Todos los eventos"},
	"now.none":     {"Nothing happened in the last 24 hours.", "过去 24 小时内没有事件。", "過去 24 小時內沒有事件。", "Rien ne s’est passé ces dernières 24 heures.", "In den letzten 24 Stunden ist nichts geschehen.", "No ha pasado nada en las últimas 24 horas."},
	"sent.title":   {"Sent to others today", "今日对外发送", "今日對外發送", "Envoyé à des tiers aujourd’hui", "Heute an andere gesendet", "Enviado a otros hoy"},
	"sent.hooks":   {"%s arrived", "%s 条已送达", "%s 則已送達", "%s arrivés", "%s angekommen", "%s llegaron"},
	"sent.late":    {"%s are tried again", "%s 条正在重试", "%s 則正在重試", "%s en nouvel essai", "%s werden erneut versucht", "%s se reintentan"},
	"sent.agents":  {"Agents", "智能代理", "智慧代理", "Agents", "Agenten", "Agentes"},
	"sent.asks":    {"%s ask you", "%s 项请求待您决定", "%s 項請求待您決定", "%s vous demandent", "%s fragen Sie", "%s le preguntan"},
	"sent.none":    {"none asks", "没有请求", "沒有請求", "aucun ne demande", "keiner fragt", "ninguno pregunta"},
	"todo.locked":  {"Proof by digits is off for a while; the link still works.", "数字验证暂停，链接仍然可用。", "數字驗證暫停，連結仍然可用。", "La preuve par chiffres est suspendue ; le lien fonctionne.", "Der Nachweis durch Ziffern ruht eine Weile; der Link gilt weiter.", "La prueba por cifras queda suspendida un rato; el enlace sigue valiendo."},
}
