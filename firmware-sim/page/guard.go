package page

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
)

// policy lets the page load what the program brings, talk to it, and nothing
// else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard stands before everything: it sets the headers and refuses requests that a
// page of another origin could have caused.
func guard(next http.Handler) http.Handler {
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		// A name of another host that was pointed at the loopback would be the same
		// origin to a browser.
		if !loopback(r.Host) {
			refuse(w, http.StatusMisdirectedRequest, "The host must be localhost or an address of the loopback.")
			return
		}
		if r.Method == http.MethodPost {
			if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
				refuse(w, http.StatusUnsupportedMediaType, "The Content-Type must be application/json.")
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		}
		next.ServeHTTP(w, r)
	})
}

// loopback reports whether a host, with or without port, names this machine.
func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if n := len(host); n > 2 && host[0] == '[' && host[n-1] == ']' {
		host = host[1 : n-1]
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// readJSON decodes a small body; unknown members are refused.
func readJSON(w http.ResponseWriter, r *http.Request, v any) bool {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one value")
		}
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "The body must be one JSON object with `action` and, where the action needs them, `door` or `on`.")
	}
	return err == nil
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the page has gone
}

// refuse answers what is no request of the page's.
func refuse(w http.ResponseWriter, status int, why string) {
	reply(w, status, Result{Outcome: "refused", Why: why})
}
