package page

import (
	"fmt"
	"net/http"

	"github.com/postern-io/postern/internal/localpage"
)

// events sends the state at once and whenever it changes.
func (p *Page) events(w http.ResponseWriter, r *http.Request, c *Cabinet) {
	select {
	case p.pages <- struct{}{}:
		defer func() { <-p.pages }()
	default:
		refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("At most %d pages are live at once; close another and reload.", maxPages))
		return
	}
	localpage.Stream[struct{}](w, r, lookEvery, func() any { return p.state(c) }, nil)
}
