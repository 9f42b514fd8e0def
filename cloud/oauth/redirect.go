package oauth

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const maxRedirect = 1024 // characters

// goodRedirect reports whether answers may go to an address: https, http to this
// machine itself, or a scheme of a program's own, complete and without a fragment
// (RFC 6749 3.1.2, RFC 8252 7).
func goodRedirect(raw string) bool {
	if len(raw) > maxRedirect || !isPrintable(raw) || strings.ContainsAny(raw, "#\\\"<>") {
		return false
	}
	u, err := url.Parse(raw)
	if err != nil || u.User != nil || u.Opaque != "" {
		return false
	}
	if isPrivate(raw) {
		return true
	}
	if u.Hostname() == "" || strings.HasSuffix(u.Host, ":") {
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

// desktopSchemes are the schemes without a domain name of desktop programs that
// many people have. Any program on a machine can claim one; what it gets then is a
// code that only the program which began can use (PKCE).
var desktopSchemes = []string{"claude", "cursor", "vscode", "vscode-insiders", "windsurf", "zed"}

// privateScheme is a domain name in reverse (RFC 8252 7.1), of at most 64 signs.
var privateScheme = regexp.MustCompile(`^[a-z][a-z0-9-]*(\.[a-z0-9-]+)+$`)

// isPrivate reports whether an address begins with a scheme of a program's own and
// goes on with a path, as in com.example.desk:/cb.
func isPrivate(raw string) bool {
	scheme, rest, ok := strings.Cut(raw, ":")
	return ok && len(scheme) <= 64 && strings.HasPrefix(rest, "/") && (privateScheme.MatchString(scheme) || slices.Contains(desktopSchemes, scheme))
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

// isPrintable reports whether s is printable ASCII without spaces.
func isPrintable(s string) bool {
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

// hostOf is the host of an address that goodRedirect let pass; of a scheme of a
// program's own it is the scheme with its colon.
func hostOf(raw string) string {
	if isPrivate(raw) {
		scheme, _, _ := strings.Cut(raw, ":")
		return scheme + ":"
	}
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Host
}
