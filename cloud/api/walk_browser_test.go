package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"html"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/internal/browsertest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/internal/verdict"
)

// In a real browser: nothing that axe objects to on any list, record or form, on a
// telephone and on a desk, in light and dark, in every language; no page wider than
// its window, though names are long; no error in the console, nothing from other hosts.
func TestGeneratedPagesInARealBrowser(t *testing.T) {
	only := os.Getenv(browsertest.Pictures) != ""
	if !ring.Full() && !only {
		t.Skip("full ring: opens every generated page six times and more")
	}
	chromium, node := browsertest.Tools(t)
	x := newWorld(t)
	x.furnish()
	x.lengthen(`=Very` + strings.Repeat("long", 40) + ` מזל <b>` + strings.Repeat(" name", 25))
	d := newDesk(t, x)
	base := d.listen()
	var languages []string
	for _, l := range locale.All() {
		languages = append(languages, l.Code)
	}
	for _, who := range []struct {
		person
		languages []string
	}{{x.signIn("admin", x.token(admin)), languages}, {x.signIn("operator", x.token(cloud.PlatformAdmin)), languages[:1]}} {
		paths, forms := d.pathsOf(who.person)
		require.Greater(t, len(paths), 3)
		if d.may(who.person, "reports.deliveries") {
			paths = append(paths, "/console/reports", "/console/kit")
		}
		args := []string{"nouns.mjs", base, who.session, strings.Join(paths, " "), strings.Join(forms, " "), strings.Join(who.languages, " "), chromium}
		if only {
			args = append(args, os.Getenv(browsertest.Pictures))
		}
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		if deadline, ok := t.Deadline(); ok { // time to say what the script said
			ctx, cancel = context.WithDeadline(ctx, deadline.Add(-10*time.Second))
		}
		cmd := exec.CommandContext(ctx, node, args...)
		cmd.Dir = "../page/browser"
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&errs, t.Output())
		err := cmd.Run()
		cancel()
		require.NoError(t, err, "%s", errs.String())
		var found struct {
			Axe                        map[string][]string
			Console, Foreign, Overflow []string
		}
		require.NoError(t, json.Unmarshal(out.Bytes(), &found))
		verdict.RecordPages(t, "lists, records and forms of the console", found.Axe)
		require.Greater(t, len(found.Axe), 4*len(paths)+len(forms))
		require.Empty(t, found.Console)
		require.Empty(t, found.Foreign)
		require.Empty(t, found.Overflow)
		for name, violations := range found.Axe {
			require.Empty(t, violations, name)
		}
	}
}

// Every key of the console does what it is for, in a real browser, and none while
// single keys are off or in a field.
func TestKeysOfTheConsole(t *testing.T) {
	ring.SkipUnlessFull(t, "a browser loads forty pages")
	chromium, node := browsertest.Tools(t)
	x := newWorld(t)
	x.furnish()
	d := newDesk(t, x)
	cmd := exec.CommandContext(t.Context(), node, "keymap.mjs", d.listen(), x.signIn("admin", x.token(admin)).session, chromium)
	cmd.Dir = "../page/browser"
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, "%s", errs.String())
	var found struct {
		Failed, Console []string
		Pressed         int
	}
	require.NoError(t, json.Unmarshal(out, &found))
	require.Empty(t, found.Failed)
	require.Empty(t, found.Console)
	require.Greater(t, found.Pressed, 60)
}

// listen serves the pages to browsers, at the address that it gives, until the test
// ends.
func (d *desk) listen() string {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(d.t, err)
	go func() { _ = d.s.Serve(ln) }() // ends with the server
	return "http://" + ln.Addr().String()
}

// pathsOf are the generated lists that a person sees with a record of each, and the forms
// of it.
func (d *desk) pathsOf(p person) (out, forms []string) {
	for _, n := range d.x.table.Nouns() {
		read := n.List
		if read == "" {
			read = n.Find
		}
		if n.Area == "" || !d.may(p, read) {
			continue
		}
		list := "/console/" + n.Path
		s := d.check(p, list)
		out = append(out, list)
		if slices.Contains(links(s.body), list+"/new") {
			forms = append(forms, list+"/new")
		}
		if n.List == "" {
			forms = append(forms, formsOf(d, p, list)...)
		} else if row := wholeRow.FindStringSubmatch(s.body); row != nil {
			to := html.UnescapeString(row[1])
			out, forms = append(out, to), append(forms, formsOf(d, p, to)...)
		}
	}
	return out, forms
}
