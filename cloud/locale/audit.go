package locale

// auditWords are what the page of the audit trail says.
var auditWords = map[string]texts{
	"audit.export":  {"Export as CSV", "导出为 CSV", "匯出為 CSV", "Exporter en CSV", "Als CSV exportieren", "Exportar como CSV"},
	"audit.person":  {"Person", "人员", "人員", "Personne", "Person", "Persona"},
	"audit.action":  {"Action", "操作", "操作", "Action", "Aktion", "Acción"},
	"audit.target":  {"Record", "记录", "紀錄", "Enregistrement", "Datensatz", "Registro"},
	"audit.from":    {"From", "从", "自", "Du", "Von", "Desde"},
	"audit.to":      {"Until", "至", "至", "Jusqu’au", "Bis", "Hasta"},
	"audit.before":  {"Before:", "变更前：", "變更前：", "Avant :", "Vorher:", "Antes:"},
	"audit.after":   {"After:", "变更后：", "變更後：", "Après :", "Nachher:", "Después:"},
	"audit.hour":    {"This person’s last hour", "此人前一小时的操作", "此人前一小時的操作", "Sa dernière heure", "Letzte Stunde dieser Person", "La última hora de esta persona"},
	"audit.details": {"Details", "详情", "詳細資訊", "Détails", "Einzelheiten", "Detalles"},
	"audit.pass":    {"by a pass of the platform", "通过平台通行证", "透過平台通行證", "par un accès de la plateforme", "mit einem Zugang der Plattform", "con un pase de la plataforma"},
}
