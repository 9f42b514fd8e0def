package page

import (
	"fmt"
	"html/template"
	"strings"

	"rsc.io/qr"
)

// quietZone is the margin that a QR code needs, in modules.
const quietZone = 4

// drawQR draws a text as a QR code: SVG within the page, since the pages' policy
// admits no images but files of ours, and a file would be asked for again. caption is the id of
// the element of the page that says what it is for.
func drawQR(text, caption string) (template.HTML, error) {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return "", fmt.Errorf("draw QR code: %w", err)
	}
	var path strings.Builder
	for y := range code.Size {
		for x := range code.Size {
			if code.Black(x, y) {
				fmt.Fprintf(&path, "M%d %dh1v1h-1z", x+quietZone, y+quietZone)
			}
		}
	}
	side := code.Size + 2*quietZone
	return template.HTML(fmt.Sprintf(`<svg class="qr" viewBox="0 0 %d %d" role="img" aria-labelledby="%s" shape-rendering="crispEdges"><path class="qr-ground" d="M0 0h%dv%dH0z"/><path class="qr-ink" d="%s"/></svg>`,
		side, side, caption, side, side, path.String())), nil
}
