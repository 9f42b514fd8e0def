package oauth

import (
	"net/url"
	"strconv"
	"strings"
)

const maxRedirect = 1024 // characters

// goodRedirect reports whether answers may go to an address: https, or http to
// this machine itself, complete and without a fragment (RFC 6749 3.1.2). Other
// schemes belong to whatever program claimed them last.
func goodRedirect(raw string) bool {
	if len(raw) > maxRedirect || !plain(raw) || strings.ContainsAny(raw, "#\\\"<>") {
		return false
	}
	u, err := url.Parse(raw)
	if err != nil || u.User != nil || u.Opaque != "" || u.Hostname() == "" || strings.HasSuffix(u.Host, ":") {
		return false
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return false
		}
	}
	if strings.HasPrefix(raw, "https://") {
		return true
	}
	_, ok := withoutPort(raw)
	return ok
}

// sameRedirect reports whether an address is the registered one: character by
// character, but for the port on the loopback, which a program gets anew each
// time it runs (RFC 8252 7.3).
func sameRedirect(registered, given string) bool {
	if registered == given {
		return true
	}
	a, ok1 := withoutPort(registered)
	b, ok2 := withoutPort(given)
	return ok1 && ok2 && a == b
}

// withoutPort cuts the port out of an address of the loopback; ok is false for
// any other.
func withoutPort(raw string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(raw, "http://")
	if !ok {
		return "", false
	}
	for _, host := range []string{"127.0.0.1", "[::1]", "localhost"} {
		after, ok := strings.CutPrefix(rest, host)
		if !ok {
			continue
		}
		if port, ok := strings.CutPrefix(after, ":"); ok {
			after = strings.TrimLeft(port, "0123456789")
			if n := len(port) - len(after); n == 0 || n > 5 {
				return "", false
			}
		}
		if after == "" || after[0] == '/' || after[0] == '?' {
			return host + after, true
		}
	}
	return "", false
}

// plain reports whether s is printable ASCII without spaces.
func plain(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return s != ""
}

// answerTo adds parameters to a redirect address, whose own query stays (RFC
// 6749 3.1.2).
func answerTo(redirect string, params url.Values) string {
	sep := "?"
	if strings.Contains(redirect, "?") {
		sep = "&"
	}
	return redirect + sep + params.Encode()
}

// hostOf is the host of an address that goodRedirect let pass.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Host
}
