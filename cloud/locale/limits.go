package locale

// limitWords are the words of the table of limits.
var limitWords = map[string]texts{
	"limits.title":         {"Limits", "限额", "限額", "Limites", "Grenzen", "Límites"},
	"limits.lead":          {"Calls a minute. An answer with status 429 says in Retry-After when to call again.", "每分钟调用次数。状态 429 的响应在 Retry-After 中说明何时可再次调用。", "每分鐘呼叫次數。狀態 429 的回應在 Retry-After 中說明何時可再次呼叫。", "Appels par minute. Une réponse 429 dit dans Retry-After quand rappeler.", "Aufrufe je Minute. Eine Antwort mit Status 429 sagt in Retry-After, wann es weitergeht.", "Llamadas por minuto. Una respuesta 429 dice en Retry-After cuándo volver a llamar."},
	"limits.none":          {"none", "无", "無", "aucune", "keine", "ninguno"},
	"limit.authenticated":  {"of one token", "每个令牌", "每個權杖", "par jeton", "je Token", "por token"},
	"limit.anonymous":      {"without a token, of one address; also lookups that find nothing", "无令牌，每个地址；也含未查到结果的查询", "無權杖，每個位址；也含查無結果的查詢", "sans jeton, par adresse ; aussi les recherches sans résultat", "ohne Token, je Adresse; auch Suchen ohne Fund", "sin token, por dirección; también búsquedas sin resultado"},
	"limit.parcel":         {"without a token, about one parcel from one address", "无令牌，每个地址对每件包裹", "無權杖，每個位址對每件包裹", "sans jeton, par colis et adresse", "ohne Token, je Paket und Adresse", "sin token, por paquete y dirección"},
	"limit.parcels":        {"without a token, about all parcels from one address", "无令牌，每个地址对所有包裹", "無權杖，每個位址對所有包裹", "sans jeton, tous colis, par adresse", "ohne Token, alle Pakete, je Adresse", "sin token, todos los paquetes, por dirección"},
	"limit.parcel_all":     {"without a token or proof, about one parcel from all addresses", "无令牌且无证明，所有地址对每件包裹", "無權杖且無證明，所有位址對每件包裹", "sans jeton ni preuve, par colis, toutes adresses", "ohne Token und Nachweis, je Paket, alle Adressen", "sin token ni prueba, por paquete, todas las direcciones"},
	"limit.batch":          {"batches, of one token", "批量，每个令牌", "批次，每個權杖", "lots, par jeton", "Sammelaufträge, je Token", "lotes, por token"},
	"limit.quotes":         {"quotes, of one token", "报价，每个令牌", "報價，每個權杖", "devis, par jeton", "Preisanfragen, je Token", "cotizaciones, por token"},
	"limit.replay":         {"webhooks sent again or as a test, of one token", "重发或测试的 Webhook，每个令牌", "重送或測試的 Webhook，每個權杖", "webhooks renvoyés ou d’essai, par jeton", "Webhooks nochmals oder zur Probe, je Token", "webhooks reenviados o de prueba, por token"},
	"limit.doors":          {"remote openings, of one cabinet", "远程开门，每个快递柜", "遠端開門，每個智慧櫃", "ouvertures à distance, par consigne", "Fernöffnungen, je Schrank", "aperturas remotas, por taquilla"},
	"limit.ingest":         {"tracking uploads, of one provider", "轨迹上传，每个提供方", "軌跡上傳，每個提供方", "envois de suivi, par prestataire", "Sendungsdaten, je Anbieter", "envíos de seguimiento, por proveedor"},
	"limit.login_address":  {"failed logins, of one address", "登录失败，每个地址", "登入失敗，每個位址", "connexions échouées, par adresse", "gescheiterte Anmeldungen, je Adresse", "inicios fallidos, por dirección"},
	"limit.login_account":  {"logins, of one account", "登录，每个账户", "登入，每個帳戶", "connexions, par compte", "Anmeldungen, je Konto", "inicios, por cuenta"},
	"limit.oauth_register": {"registrations of programs, of one address", "程序注册，每个地址", "程式註冊，每個位址", "enregistrements de programmes, par adresse", "Anmeldungen von Programmen, je Adresse", "registros de programas, por dirección"},
	"limit.oauth_token":    {"tokens of programs, given or ended, of one address", "程序令牌的签发或撤销，每个地址", "程式權杖的核發或撤銷，每個位址", "jetons de programmes, donnés ou révoqués, par adresse", "Token von Programmen, vergeben oder beendet, je Adresse", "tokens de programas, dados o revocados, por dirección"},
	"limit.oauth_fetch":    {"descriptions of programs that are read, of one address", "读取程序描述，每个地址", "讀取程式描述，每個位址", "descriptions de programmes lues, par adresse", "gelesene Beschreibungen von Programmen, je Adresse", "descripciones de programas leídas, por dirección"},
	"limit.pages":          {"checks of timelines and set-up pages, of one address", "时间线检查和设置页面，每个地址", "時間軸檢查和設定頁面，每個位址", "vérifications et mise en service, par adresse", "Prüfungen und Einrichtung, je Adresse", "comprobaciones y configuración, por dirección"},
	"limit.tools":          {"calls of one tool, of one caller", "单个工具，每个调用方", "單一工具，每個呼叫方", "par outil et appelant", "je Werkzeug und Aufrufer", "por herramienta y llamante"},
}
