package oauth

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/internal/ring"
)

// The quick ring walks beside the model fewer times; -rapid.checks says otherwise.
var _ = flag.Set("rapid.checks", strconv.Itoa(ring.Count(20, 100)))

// Codes live a minute, access tokens an hour, refresh tokens thirty days from
// their last use.
func TestLives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.client(callback)
		late := r.allowed(admin, "support", asking(id))
		time.Sleep(CodeLife)
		require.Equal(t, InvalidGrant, r.token(paying(id, late)).error())
		code := r.allowed(admin, "support", asking(id))
		time.Sleep(CodeLife - time.Millisecond)
		access, refresh := r.given(paying(id, code))
		time.Sleep(AccessLife - time.Millisecond)
		_, ok := r.stored(access)
		require.True(t, ok)
		time.Sleep(time.Millisecond)
		_, ok = r.stored(access)
		require.False(t, ok)
		for range 3 {
			_, refresh = r.given(refreshing(id, refresh))
			time.Sleep(RefreshLife - time.Millisecond)
		}
		access, _ = r.given(refreshing(id, refresh))
		require.Equal(t, InvalidGrant, r.token(paying(id, code)).error(), "a code of months ago was used before")
		_, ok = r.stored(access)
		require.False(t, ok)

		_, refresh = r.given(paying(id, r.allowed(admin, "support", asking(id))))
		time.Sleep(RefreshLife)
		require.Equal(t, InvalidGrant, r.token(refreshing(id, refresh)).error())
		lines := r.audits()
		require.Equal(t, 1, count(lines, "agent_reuse_detected"), "what ran out was not used twice")
	})
}

func count(list []string, s string) (n int) {
	for _, x := range list {
		if x == s {
			n++
		}
	}
	return n
}

// Unused clients go by themselves, and clients that are in use stay.
func TestSweep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.s.Run(ctx) }()
		defer func() { stop(); require.NoError(t, <-done) }()
		unused, used := r.client(callback), r.client(callback)
		access, refresh := r.given(paying(used, r.allowed(admin, "support", asking(used))))
		there := func(id string) bool {
			err := r.db.Look(t.Context(), func(v cloud.View) error { _, err := v.OAuthClient(id); return err })
			return err == nil
		}
		kept := func(token string) bool { _, err := r.db.FindToken(t.Context(), auth.Hash(token)); return err == nil }
		time.Sleep(unusedLife - time.Hour)
		require.True(t, there(unused))
		time.Sleep(3 * time.Hour)
		require.False(t, there(unused))
		require.True(t, there(used))
		require.False(t, kept(access))
		require.True(t, kept(refresh))
		_, refusal := r.check(asking(unused))
		require.Equal(t, InvalidClient, refusal.Err.Code)
		time.Sleep(RefreshLife + time.Hour)
		require.False(t, kept(refresh))
		require.True(t, there(used), "it need not register again")
		time.Sleep(idleLife)
		require.False(t, there(used))
	})
}

// Unused registrations are bounded: the older ones make room, those
// of the hour do not.
func TestRegistrationsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		ch := cloud.Changes{}
		for i := range maxUnused {
			ch.OAuthClients = append(ch.OAuthClients, cloud.OAuthClient{ID: fmt.Sprint("c", i), CreatedAt: time.Now()})
		}
		r.write(ch)
		a := r.do("POST", RegisterPath, "application/json", `{"redirect_uris":["https://a.example/"]}`)
		require.Equal(t, 503, a.status)
		require.Equal(t, TemporarilyUnavailable, a.error())
		require.Equal(t, "600", a.header("Retry-After"))
		time.Sleep(time.Hour + time.Second)
		r.client(callback)
		n := 0
		require.NoError(t, r.db.Look(t.Context(), func(v cloud.View) (err error) { n, err = v.UnusedOAuthClients(time.Time{}); return err }))
		require.Equal(t, 1, n)
	})
}

// grantModel is what must hold of one grant, whatever is done in whatever
// order.
type grantModel struct {
	client   string
	code     string
	codeEnd  time.Time
	used     bool // the code
	over     bool
	until    time.Time // of the refresh token that is good
	current  string
	former   []string // refresh tokens that were used
	accesses map[string]time.Time
}

// Any order of uses and reuses of codes and refresh tokens, revocations and
// waits: what lets in is exactly what a plain model says.
func TestUseAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.SliceOfN(rapid.IntRange(0, 1<<20), 5, 40).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) { walk(t, seed) })
	})
}

func walk(t *testing.T, steps []int) {
	r := newRig(t).unlimited()
	clients := []string{r.client(callback), r.client(callback)}
	var grants []*grantModel
	next := func(n int) int { x := steps[0] % n; steps[0] /= n; return x }
	for ; len(steps) > 0; steps = steps[1:] {
		r.unlimited()
		kind := next(7)
		if kind == 0 || len(grants) == 0 {
			m := &grantModel{client: clients[next(2)], accesses: map[string]time.Time{}}
			m.code, m.codeEnd = r.allowed(admin, "support", asking(m.client)), time.Now().Add(CodeLife)
			grants = append(grants, m)
			continue
		}
		m := grants[next(len(grants))]
		now := time.Now()
		took := func(a reply) {
			require.Equal(t, 200, a.status, a.body)
			m.current, m.until = a.text("refresh_token"), now.Add(RefreshLife)
			m.accesses[a.text("access_token")] = now.Add(AccessLife)
		}
		switch kind {
		case 1, 2: // the code, sometimes by the wrong client
			client := m.client
			if next(5) == 0 {
				client = clients[0]
			}
			a := r.token(paying(client, m.code))
			switch {
			case m.used:
				m.over = true
				require.Equal(t, InvalidGrant, a.error())
			case client == m.client && now.Before(m.codeEnd) && !m.over:
				m.used = true
				took(a)
			default:
				require.Equal(t, InvalidGrant, a.error())
			}
		case 3, 4: // the good refresh token
			if m.current == "" {
				continue
			}
			a := r.token(refreshing(m.client, m.current))
			if m.over || !now.Before(m.until) {
				require.Equal(t, InvalidGrant, a.error())
				continue
			}
			m.former = append(m.former, m.current)
			took(a)
		case 5: // one that was used, or the end
			if len(m.former) > 0 && next(2) == 0 {
				require.Equal(t, InvalidGrant, r.token(refreshing(m.client, m.former[next(len(m.former))])).error())
				if now.Before(m.until) { // otherwise it was over before
					m.over = true
				}
			} else if m.current != "" {
				require.Equal(t, 200, r.post(RevokePath, url.Values{"client_id": {m.client}, "token": {m.current}}).status)
				m.over = m.over || now.Before(m.until)
			}
		case 6:
			time.Sleep([]time.Duration{time.Second, CodeLife, AccessLife / 2, AccessLife, 20 * 24 * time.Hour}[next(5)])
		}
		for _, g := range grants {
			for token, end := range g.accesses {
				_, good := r.stored(token)
				require.Equal(t, !g.over && time.Now().Before(end), good)
			}
			if g.current != "" {
				_, good := r.stored(g.current)
				require.Equal(t, !g.over && time.Now().Before(g.until), good)
			}
		}
	}
	r.audits()
}
