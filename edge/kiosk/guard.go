package kiosk

import (
	"net/http"

	"github.com/postern-io/postern/edge/scanner"
	"github.com/postern-io/postern/internal/localpage"
)

// guard stands before everything.
func guard(next http.Handler, camera bool) http.Handler {
	return localpage.Guard{Camera: camera, Body: body, Refuse: func(w http.ResponseWriter, r *http.Request, status int) {
		why := map[int]string{http.StatusMisdirectedRequest: "host", http.StatusBadRequest: "query", http.StatusUnsupportedMediaType: "json"}[status]
		if why == "json" && r.URL.Path == picturePath {
			why = "picture"
		}
		refuse(w, status, why)
	}}.Before(next)
}

func body(path string) (mediaType string, most int64) {
	if path == picturePath {
		return "application/octet-stream", scanner.FrameSize
	}
	return "application/json", maxBody
}

// read decodes a small JSON body; unknown members are refused.
func read(w http.ResponseWriter, r *http.Request, v any) bool {
	err := localpage.Read(r, v)
	if err != nil {
		refuse(w, http.StatusBadRequest, "body") // what it held may be a code: it is not repeated
	}
	return err == nil
}

// refuse answers what is no request of the page's.
func refuse(w http.ResponseWriter, status int, why string) {
	localpage.Reply(w, status, Result{Outcome: "refused", Why: why})
}
