package locale

import (
	"regexp"
	"strings"
)

// bounds are the sentences of package check about a member, with the places of
// its name and of what is allowed.
var bounds = map[string]texts{
	"%s is required.": {"%s is required.", "%s 为必填项。", "%s 為必填。", "%s est obligatoire.", "%s fehlt.", "%s es obligatorio."},
	"%s must be true: nothing is done without it.":    {"%s must be true: nothing is done without it.", "%s 必须为 true：否则不会执行。", "%s 必須為 true：否則不會執行。", "%s doit être true : rien n’est fait sans cela.", "%s muss true sein: ohne das geschieht nichts.", "%s debe ser true: sin ello no se hace nada."},
	"%s must be from %s to %s.":                       {"%s must be from %s to %s.", "%s 必须在 %s 到 %s 之间。", "%s 必須在 %s 到 %s 之間。", "%s doit être compris entre %s et %s.", "%s muss von %s bis %s reichen.", "%s debe estar entre %s y %s."},
	"%s must be at least %s.":                         {"%s must be at least %s.", "%s 不得小于 %s。", "%s 不得小於 %s。", "%s doit être d’au moins %s.", "%s muss mindestens %s sein.", "%s debe ser al menos %s."},
	"%s must be at most %s.":                          {"%s must be at most %s.", "%s 不得大于 %s。", "%s 不得大於 %s。", "%s doit être d’au plus %s.", "%s darf höchstens %s sein.", "%s debe ser como máximo %s."},
	"%s must be above %s.":                            {"%s must be above %s.", "%s 必须大于 %s。", "%s 必須大於 %s。", "%s doit être supérieur à %s.", "%s muss größer als %s sein.", "%s debe ser mayor que %s."},
	"%s must have %s to %s characters; it has %s.":    {"%s must have %s to %s characters; it has %s.", "%s 必须有 %s 到 %s 个字符；现有 %s 个。", "%s 必須有 %s 到 %s 個字元；現有 %s 個。", "%s doit avoir de %s à %s caractères ; il en a %s.", "%s muss %s bis %s Zeichen haben; es sind %s.", "%s debe tener de %s a %s caracteres; tiene %s."},
	"%s must have at least %s characters; it has %s.": {"%s must have at least %s characters; it has %s.", "%s 至少须有 %s 个字符；现有 %s 个。", "%s 至少須有 %s 個字元；現有 %s 個。", "%s doit avoir au moins %s caractères ; il en a %s.", "%s muss mindestens %s Zeichen haben; es sind %s.", "%s debe tener al menos %s caracteres; tiene %s."},
	"%s must have at most %s characters; it has %s.":  {"%s must have at most %s characters; it has %s.", "%s 最多 %s 个字符；现有 %s 个。", "%s 最多 %s 個字元；現有 %s 個。", "%s doit avoir au plus %s caractères ; il en a %s.", "%s darf höchstens %s Zeichen haben; es sind %s.", "%s debe tener como máximo %s caracteres; tiene %s."},
	"%s must have %s to %s elements; it has %s.":      {"%s must have %s to %s elements; it has %s.", "%s 必须有 %s 到 %s 个元素；现有 %s 个。", "%s 必須有 %s 到 %s 個元素；現有 %s 個。", "%s doit avoir de %s à %s éléments ; il en a %s.", "%s muss %s bis %s Elemente haben; es sind %s.", "%s debe tener de %s a %s elementos; tiene %s."},
	"%s must have at least %s elements; it has %s.":   {"%s must have at least %s elements; it has %s.", "%s 至少须有 %s 个元素；现有 %s 个。", "%s 至少須有 %s 個元素；現有 %s 個。", "%s doit avoir au moins %s éléments ; il en a %s.", "%s muss mindestens %s Elemente haben; es sind %s.", "%s debe tener al menos %s elementos; tiene %s."},
	"%s must have at most %s elements; it has %s.":    {"%s must have at most %s elements; it has %s.", "%s 最多 %s 个元素；现有 %s 个。", "%s 最多 %s 個元素；現有 %s 個。", "%s doit avoir au plus %s éléments ; il en a %s.", "%s darf höchstens %s Elemente haben; es sind %s.", "%s debe tener como máximo %s elementos; tiene %s."},
	"%s must be one of %s.":                           {"%s must be one of %s.", "%s 必须是以下之一：%s。", "%s 必須是以下之一：%s。", "%s doit être l’une de ces valeurs : %s.", "%s muss einer dieser Werte sein: %s.", "%s debe ser uno de estos valores: %s."},
	"%s must look like %s.":                           {"%s must look like %s.", "%s 的格式须如 %s。", "%s 的格式須如 %s。", "%s doit avoir la forme %s.", "%s muss die Form %s haben.", "%s debe tener la forma %s."},
	"%s must be a country code of two letters that ISO 3166-1 assigns, such as CA, DE or US.": {"%s must be a country code of two letters that ISO 3166-1 assigns, such as CA, DE or US.", "%s 必须是 ISO 3166-1 已分配的两位国家代码，例如 CA、DE 或 US。", "%s 必須是 ISO 3166-1 已分配的兩碼國家代碼，例如 CA、DE 或 US。", "%s doit être un code de pays de deux lettres attribué par ISO 3166-1, comme CA, DE ou US.", "%s muss ein Ländercode aus zwei Buchstaben sein, den ISO 3166-1 vergibt, zum Beispiel CA, DE oder US.", "%s debe ser un código de país de dos letras asignado por ISO 3166-1, como CA, DE o US."},
	"%s is in the list twice.":                                                   {"%s is in the list twice.", "%s 在列表中重复。", "%s 在清單中重複。", "%s est deux fois dans la liste.", "%s steht doppelt in der Liste.", "%s está dos veces en la lista."},
	"%s must not contain control characters.":                                    {"%s must not contain control characters.", "%s 不得包含控制字符。", "%s 不得包含控制字元。", "%s ne doit pas contenir de caractères de contrôle.", "%s darf keine Steuerzeichen enthalten.", "%s no debe contener caracteres de control."},
	"%s must be one line, without control characters.":                           {"%s must be one line, without control characters.", "%s 必须为单行，且不含控制字符。", "%s 必須為單行，且不含控制字元。", "%s doit tenir sur une ligne, sans caractères de contrôle.", "%s muss eine Zeile ohne Steuerzeichen sein.", "%s debe ser una sola línea, sin caracteres de control."},
	"%s must be a text.":                                                         {"%s must be a text.", "%s 必须是文本。", "%s 必須是文字。", "%s doit être un texte.", "%s muss ein Text sein.", "%s debe ser un texto."},
	"%s must be a whole number of at most 18 digits.":                            {"%s must be a whole number of at most 18 digits.", "%s 必须是最多 18 位的整数。", "%s 必須是最多 18 位的整數。", "%s doit être un nombre entier d’au plus 18 chiffres.", "%s muss eine ganze Zahl mit höchstens 18 Ziffern sein.", "%s debe ser un número entero de 18 cifras como máximo."},
	"%s must be a number.":                                                       {"%s must be a number.", "%s 必须是数字。", "%s 必須是數字。", "%s doit être un nombre.", "%s muss eine Zahl sein.", "%s debe ser un número."},
	"%s must be an amount of at most 1000000000000.":                             {"%s must be an amount of at most 1000000000000.", "%s 必须是不超过 1000000000000 的金额。", "%s 必須是不超過 1000000000000 的金額。", "%s doit être un montant d’au plus 1000000000000.", "%s muss ein Betrag von höchstens 1000000000000 sein.", "%s debe ser un importe de 1000000000000 como máximo."},
	"%s must be true or false.":                                                  {"%s must be true or false.", "%s 必须是 true 或 false。", "%s 必須是 true 或 false。", "%s doit être true ou false.", "%s muss true oder false sein.", "%s debe ser true o false."},
	"%s must be a date and time with offset, such as 2026-06-10T11:30:00-04:00.": {"%s must be a date and time with offset, such as 2026-06-10T11:30:00-04:00.", "%s 必须是带时区偏移的日期时间，例如 2026-06-10T11:30:00-04:00。", "%s 必須是帶時區偏移的日期時間，例如 2026-06-10T11:30:00-04:00。", "%s doit être une date et une heure avec décalage, comme 2026-06-10T11:30:00-04:00.", "%s muss Datum und Uhrzeit mit Zeitverschiebung sein, zum Beispiel 2026-06-10T11:30:00-04:00.", "%s debe ser fecha y hora con desfase, como 2026-06-10T11:30:00-04:00."},
	"%s must be a list.":                                                         {"%s must be a list.", "%s 必须是列表。", "%s 必須是清單。", "%s doit être une liste.", "%s muss eine Liste sein.", "%s debe ser una lista."},
	"%s must be an object.":                                                      {"%s must be an object.", "%s 必须是对象。", "%s 必須是物件。", "%s doit être un objet.", "%s muss ein Objekt sein.", "%s debe ser un objeto."},
	"%s must be valid UTF-8.":                                                    {"%s must be valid UTF-8.", "%s 必须是有效的 UTF-8。", "%s 必須是有效的 UTF-8。", "%s doit être du UTF-8 valide.", "%s muss gültiges UTF-8 sein.", "%s debe ser UTF-8 válido."},
	"%s must not contain the character U+0000.":                                  {"%s must not contain the character U+0000.", "%s 不得包含字符 U+0000。", "%s 不得包含字元 U+0000。", "%s ne doit pas contenir le caractère U+0000.", "%s darf das Zeichen U+0000 nicht enthalten.", "%s no debe contener el carácter U+0000."},
	"%s is no member that is known here.":                                        {"%s is no member that is known here.", "此处没有成员 %s。", "此處沒有成員 %s。", "%s n’est pas un membre connu ici.", "%s ist hier kein bekanntes Feld.", "%s no es un miembro conocido aquí."},
	"%s must lie in the future.":                                                 {"%s must lie in the future.", "%s 必须在将来。", "%s 必須在未來。", "%s doit être dans le futur.", "%s muss in der Zukunft liegen.", "%s debe estar en el futuro."},
	"Give one of %s.":                                                            {"Give one of %s.", "请提供以下之一：%s。", "請提供以下之一：%s。", "Donnez l’une de ces valeurs : %s.", "Bitte eines davon angeben: %s.", "Indique uno de estos: %s."},
	"%s must come together with %s.":                                             {"%s must come together with %s.", "%s 必须与 %s 一起提供。", "%s 必須與 %s 一起提供。", "%s doit être donné avec %s.", "%s muss zusammen mit %s angegeben werden.", "%s debe darse junto con %s."},
	"%s must have keys of %s to %s characters.":                                  {"%s must have keys of %s to %s characters.", "%s 的键须有 %s 到 %s 个字符。", "%s 的鍵須有 %s 到 %s 個字元。", "Les clés de %s doivent avoir de %s à %s caractères.", "Die Schlüssel von %s müssen %s bis %s Zeichen haben.", "Las claves de %s deben tener de %s a %s caracteres."},
	"%s cannot be changed here. What can be: %s.":                                {"%s cannot be changed here. What can be: %s.", "%s 不能在此更改。可更改：%s。", "%s 不能在此變更。可變更：%s。", "%s ne peut pas être changé ici. Peuvent l’être : %s.", "%s kann hier nicht geändert werden. Änderbar sind: %s.", "%s no se puede cambiar aquí. Se puede cambiar: %s."},
	"%s must have no keys but %s.":                                               {"%s must have no keys but %s.", "%s 只能有这些键：%s。", "%s 只能有這些鍵：%s。", "%s ne doit avoir que ces clés : %s.", "%s darf nur diese Schlüssel haben: %s.", "%s solo debe tener estas claves: %s."},
}

// template is a sentence that finds its places in an English text.
type template struct {
	expr *regexp.Regexp
	key  string
}

var templates = func() []template {
	var out []template
	for key := range bounds {
		expr := strings.ReplaceAll(regexp.QuoteMeta(key), "%s", "(.+)")
		if rest, ok := strings.CutPrefix(expr, "(.+)"); ok {
			expr = `(\S+)` + rest // a member's name has no blanks
		}
		out = append(out, template{regexp.MustCompile("^" + expr + "$"), key})
	}
	return out
}()

// bound is a sentence about a member in another language, with the words for the member
// if there are any; ok is false for an English text that is none of them.
func bound(lang, english, member string) (text string, ok bool) {
	for _, t := range templates {
		if found := t.expr.FindStringSubmatch(english); found != nil {
			args := make([]any, len(found)-1)
			for i, s := range found[1:] {
				args[i] = s
			}
			if member != "" && strings.HasPrefix(t.key, "%s") {
				args[0] = member
			}
			return format(bounds[t.key][index(lang)], args), true
		}
	}
	return "", false
}
