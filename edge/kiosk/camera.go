package kiosk

import (
	"errors"
	"io"
	"net/http"

	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/internal/localpage"
)

// picturePath takes what the camera of the screen sees, as scanner.Camera wants it. A
// picture is looked at and forgotten; what a symbol opens is shown at the page as with any
// other scanner.
const picturePath = "/api/picture"

func (k *Kiosk) picture(w http.ResponseWriter, r *http.Request) {
	frame := make([]byte, scanner.FrameSize)
	if _, err := io.ReadFull(r.Body, frame); err != nil {
		refuse(w, http.StatusBadRequest, "picture")
		return
	}
	found, err := k.cfg.Camera.Show(frame)
	if errors.Is(err, scanner.ErrCameraBusy) {
		localpage.Reply(w, http.StatusTooManyRequests, Result{Outcome: tooMany})
		return
	}
	localpage.Reply(w, http.StatusOK, struct {
		Found bool `json:"found"`
	}{found})
}
