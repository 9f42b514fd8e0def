package page

import (
	"html/template"
	"strings"
	"unicode"
)

// icons are drawn with one stroke in a box of 24 by 24.
var icons = map[string]string{
	"home":      `<path d="M4 11.5 12 5l8 6.5V20h-5.5v-5h-5v5H4z"/>`,
	"inbox":     `<path d="M4 13.5 7 5h10l3 8.5V19H4zM4 13.5h4.5l1.2 2.5h4.6l1.2-2.5H20"/>`,
	"cabinet":   `<path d="M4 4h16v15H4zM12 4v15M4 9.5h8M12 13h8M7 19v2M17 19v2"/>`,
	"parcel":    `<path d="m12 3 8 4.3v9.4L12 21l-8-4.3V7.3zM4 7.3l8 4.4 8-4.4M12 11.7V21"/>`,
	"warning":   `<path d="M12 4 3 19.5h18zM12 10v4.5M12 17h.01"/>`,
	"receipt":   `<path d="M6 3.5h12v17l-3-1.8-3 1.8-3-1.8-3 1.8zM9 8h6M9 12h6"/>`,
	"route":     `<path d="M6 18.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM18 9.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM8 16.5h7a3 3 0 0 0 0-6H9a3 3 0 0 1 0-3h7"/>`,
	"person":    `<circle cx="12" cy="8" r="3.6"/><path d="M5 20c.6-4 3.3-6 7-6s6.4 2 7 6"/>`,
	"people":    `<circle cx="9" cy="8.5" r="3.2"/><path d="M3 19c.5-3.5 2.8-5.2 6-5.2s5.5 1.7 6 5.2M15.5 5.6a3.2 3.2 0 0 1 0 5.8M17.5 14.3c2 .7 3.2 2.3 3.5 4.7"/>`,
	"customer":  `<path d="M4 9h16l-1-5H5zM5 9v11h14V9M9.5 20v-6h5v6"/>`,
	"handshake": `<path d="M3 8h4l5 3 5-3h4M3 16h4l4 3.5 6-4.5M17 16h4M12 11l4 4"/>`,
	"truck":     `<path d="M3 6h11v10H3zM14 10h4l3 3v3h-7"/><circle cx="7" cy="17.5" r="1.8"/><circle cx="17.5" cy="17.5" r="1.8"/>`,
	"webhook":   `<circle cx="7" cy="17" r="2.6"/><circle cx="17" cy="17" r="2.6"/><circle cx="12" cy="6.5" r="2.6"/><path d="m10.7 8.8-3.5 5.8M9.6 17h4.8m-1-8.3 3 5.9"/>`,
	"list":      `<path d="M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01"/>`,
	"sliders":   `<path d="M5 8h8M17 8h2M5 16h2M11 16h8"/><circle cx="15" cy="8" r="2"/><circle cx="9" cy="16" r="2"/>`,
	"building":  `<path d="M5 20V4h10v16M15 9h4v11M3 20h18M8.5 8h3M8.5 12h3M8.5 16h3"/>`,
	"key":       `<circle cx="8" cy="15" r="4"/><path d="m11 12 8-8M16 7l2.5 2.5"/>`,
	"robot":     `<path d="M5 9h14v10H5zM12 5v4M9 13h.01M15 13h.01M9.5 16h5M3 13v2M21 13v2"/>`,
	"mail":      `<path d="M4 6h16v12H4zM4 7l8 6 8-6"/>`,
	"eye":       `<path d="M3 12c2.2-4 5.2-6 9-6s6.8 2 9 6c-2.2 4-5.2 6-9 6s-6.8-2-9-6z"/><circle cx="12" cy="12" r="2.6"/>`,
	"badge":     `<path d="M5 5h14v14H5zM9 5V3h6v2M9 15h6"/><circle cx="12" cy="10.5" r="1.8"/>`,
	"switch":    `<path d="M8 7h8a5 5 0 0 1 0 10H8A5 5 0 0 1 8 7z"/><circle cx="16" cy="12" r="2.2"/>`,
	"phone":     `<path d="M8 3h8v18H8zM11 18h2"/>`,
	"coins":     `<circle cx="9" cy="9" r="5"/><path d="M14.5 10.2a5 5 0 1 1-4.3 8.6M9 7v4M7.5 9h3"/>`,
	"chat":      `<path d="M4 5h16v11.5h-9L6.5 20v-3.5H4z"/>`,
	"pulse":     `<path d="M3 12h4l3-7 4 14 3-7h4"/>`,
	"shield":    `<path d="M12 3 5 6v5.5c0 4.3 2.9 7.6 7 9.5 4.1-1.9 7-5.2 7-9.5V6zM9 11.8l2.2 2.2 4-4.3"/>`,
	"find":      `<circle cx="11" cy="11" r="6"/><path d="m15.5 15.5 4.5 4.5"/>`,
	"plus":      `<path d="M12 5v14M5 12h14"/>`,
	"menu":      `<path d="M4 7h16M4 12h16M4 17h16"/>`,
	"download":  `<path d="M12 4v11M7.5 11l4.5 4.5 4.5-4.5M5 20h14"/>`,
	"door":      `<path d="M5 20h14M7 20V4h6l4 2v14M13 4v16M10.5 12h.01"/>`,
	"plug":      `<path d="M9 4v4M15 4v4M7 8h10v3a5 5 0 0 1-10 0zM12 16v4"/>`,
	"clock":     `<circle cx="12" cy="12" r="8"/><path d="M12 7.5V12l3 2"/>`,
	"chart":     `<path d="M4 20h16M7 16v-4M12 16V7M17 16v-6"/>`,
	"board":     `<path d="M4 5h16M4 10h10M8 15h12M4 20h7"/>`,
}

// icon draws an icon that says nothing by itself.
func icon(name string) template.HTML {
	return template.HTML(`<svg class="i" viewBox="0 0 24 24" aria-hidden="true" focusable="false">` + icons[name] + `</svg>`) // of our own table
}

// initials are the first letters of a name, for its picture.
func initials(name string) string {
	var out []rune
	for _, part := range strings.Fields(name) {
		if r := []rune(part)[0]; unicode.IsLetter(r) && len(out) < 2 {
			out = append(out, unicode.ToUpper(r))
		}
	}
	return string(out)
}
