package kiosk

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"

	"github.com/postern-io/postern/edge/scanner"
)

// policy lets the page load what the program brings, talk to it, and nothing
// else: no inline script, no other host, no frame around it, no form that goes
// anywhere.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard stands before everything: it sets the headers and refuses requests
// that a page of another origin could have caused. Only with a camera may the page
// use one.
func guard(next http.Handler, camera bool) http.Handler {
	features := "camera=(), microphone=(), geolocation=()"
	if camera {
		features = "camera=(self), microphone=(), geolocation=()"
	}
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", features)
		h.Set("Cache-Control", "no-store")
		// A name of another host that was pointed at the loopback would be the
		// same origin to a browser.
		if !loopback(r.Host) {
			refuse(w, http.StatusMisdirectedRequest, "host")
			return
		}
		if r.URL.RawQuery != "" {
			refuse(w, http.StatusBadRequest, "query") // nothing here takes one, so that no code gets into an address
			return
		}
		if r.Method == http.MethodPost {
			want, most, why := "application/json", int64(maxBody), "json"
			if r.URL.Path == picturePath {
				want, most, why = "application/octet-stream", scanner.FrameSize, "picture"
			}
			if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != want {
				refuse(w, http.StatusUnsupportedMediaType, why)
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, most)
		}
		next.ServeHTTP(w, r)
	})
}

// Loopback reports whether a host, with or without port, names this machine.
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

// read decodes a small JSON body; unknown members are refused.
func read(w http.ResponseWriter, r *http.Request, v any) bool {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one value")
		}
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "body") // what it held may be a code: it is not repeated
		return false
	}
	return true
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
