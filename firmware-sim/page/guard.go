package page

import (
	"net/http"

	"github.com/postern-io/postern/internal/localpage"
)

// refusals are the words for requests that the guard refuses.
var refusals = map[int]string{
	http.StatusMisdirectedRequest:   "The host must be localhost or an address of the loopback.",
	http.StatusBadRequest:           "Addresses here have no query.",
	http.StatusUnsupportedMediaType: "The Content-Type must be application/json.",
}

// guard stands before everything.
func guard(next http.Handler) http.Handler {
	return localpage.Guard{
		Body:   func(string) (string, int64) { return "application/json", maxBody },
		Refuse: func(w http.ResponseWriter, _ *http.Request, status int) { refuse(w, status, refusals[status]) },
	}.Before(next)
}

// readJSON decodes a small body; unknown members are refused.
func readJSON(w http.ResponseWriter, r *http.Request, v any) bool {
	err := localpage.Read(r, v)
	if err != nil {
		refuse(w, http.StatusBadRequest, "The body must be one JSON object with `action` and, where the action needs them, `door` or `on`.")
	}
	return err == nil
}

// refuse answers what is no request of the page's.
func refuse(w http.ResponseWriter, status int, why string) {
	localpage.Reply(w, status, Result{Outcome: "refused", Why: why})
}
