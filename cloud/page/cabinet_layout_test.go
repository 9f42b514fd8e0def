package page_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/page"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/internal/ring"
)

// layoutRig has a cabinet of four free compartments, 990, beside those of the world.
func layoutRig(t *testing.T) *rig {
	r := newRig(t, func(c *page.Config) { c.Setup = setup.New(setup.Config{NewToken: device.NewToken}) })
	ch := cloud.Changes{DeviceChanges: cloud.DeviceChanges{Devices: []cloud.Device{{ID: 990, BusinessID: 42, Code: "NEW-1", Name: "Brand New", Type: "smart_locker", Protocol: "mqtt", CreatedAt: time.Now()}}},
		LockerChanges: cloud.LockerChanges{Shelves: map[cloud.DeviceID][]cloud.Shelf{990: {{Code: "A", Position: 1}}}}}
	for n := 1; n <= 4; n++ {
		ch.Compartments = append(ch.Compartments, cloud.Compartment{GridID: cloud.GridID(99000 + n), DeviceID: 990, GridCode: fmt.Sprintf("A%02d", n), ShelfCode: "A", Door: uint(n), PickupNumber: n,
			Label: fmt.Sprintf("A-%d", n), Column: 1 + (n-1)/2, Row: 1 + (n-1)%2, Size: "M", PickupEnabled: true, DoorStatus: "closed", State: cloud.GridFree})
	}
	r.w.Write(t, ch)
	return r
}

var layoutField = regexp.MustCompile(`name="(version|shelves)" value="([^"]*)"`)

// layoutOf is the form of a cabinet's layout as it is.
func (r *rig) layoutOf(cabinet string) (got, url.Values) {
	r.t.Helper()
	g := r.do("GET", "/console/cabinets/"+cabinet+"/layout", nil)
	require.Equal(r.t, 200, g.status, g.body)
	form := url.Values{"form": {formField.FindStringSubmatch(g.body)[1]}}
	for _, m := range layoutField.FindAllStringSubmatch(g.body, -1) {
		form.Set(m[1], m[2])
	}
	for _, name := range []string{"door", "shelf", "column", "row", "board", "channel", "width", "height", "depth"} {
		for _, m := range regexp.MustCompile(`<input name="`+name+`"[^>]* value="([^"]*)"`).FindAllStringSubmatch(g.body, -1) {
			form.Add(name, m[1])
		}
	}
	for _, m := range regexp.MustCompile(`<select name="inverted"><option value="no">[^<]*</option><option value="yes"( selected)?>`).FindAllStringSubmatch(g.body, -1) {
		form.Add("inverted", map[bool]string{true: "yes", false: "no"}[m[1] != ""])
	}
	for _, m := range regexp.MustCompile(`<option selected>([A-Z]+)</option>`).FindAllStringSubmatch(g.body, -1) {
		form.Add("size", m[1])
		form.Add("pickup", "yes")
	}
	return g, form
}

// Staff lay out a cabinet by a form, without script: a compartment more, one less,
// drawn anew with labels, saved. What is in use is refused by name, and other
// businesses' cabinets are none.
func TestLayoutPage(t *testing.T) {
	t.Parallel()
	r := layoutRig(t)
	require.Equal(t, 303, r.do("GET", "/console/cabinets/990/layout", nil).status, "log in first")
	r.signedIn()
	g, form := r.layoutOf("990")
	clean(t, r, g)
	require.Len(t, form["door"], 4)
	post := func(cabinet string, form url.Values, extra ...string) got {
		f := url.Values{}
		for k, v := range form {
			f[k] = v
		}
		for i := 0; i < len(extra); i += 2 {
			f.Set(extra[i], extra[i+1])
		}
		return r.do("POST", "/console/cabinets/"+cabinet+"/layout", f)
	}
	g = post("990", form, "do", "add")
	require.Contains(t, g.body, `id="grid-5"`)
	require.Contains(t, g.body, `<span class="name">A-5</span>`)
	require.NotContains(t, post("990", form, "remove", "1").body, `id="grid-4"`)
	for _, none := range []string{"0", "5", "-1", "x"} {
		g = post("990", form, "remove", none)
		require.Equal(t, 200, g.status, none)
		require.Contains(t, g.body, `id="grid-4"`, "compartment %s is none of the form", none)
	}
	form["pickup"][0] = "no"
	g = post("990", form, "do", "draw")
	require.Contains(t, g.body, `<span class="name">Staff</span>`)
	require.NotContains(t, g.body, `A-4`)
	require.Equal(t, 403, post("990", form, "do", "save", "form", strings.Repeat("x", 32)).status)

	form["board"][1], form["channel"][1], form["inverted"][1] = "B", "1", "yes"
	form["board"][2], form["channel"][2] = "B", "1"
	g = post("990", form, "do", "save")
	require.Equal(t, 422, g.status)
	require.Contains(t, g.body, "Two compartments are on one lock")
	form["channel"][2] = "none"
	require.Equal(t, 422, post("990", form, "do", "save").status)
	form["channel"][2] = "2"
	g = post("990", form, "do", "save")
	require.Equal(t, 303, g.status, g.body)
	g, form = r.layoutOf("990")
	require.Contains(t, g.body, `<span class="name">A-3</span>`)
	require.Equal(t, []any{[]string{"A", "B", "B", "A"}, []string{"1", "1", "2", "4"}, []string{"no", "yes", "no", "no"}}, []any{form["board"], form["channel"], form["inverted"]})
	require.Equal(t, []string{"", "", "", ""}, form["width"], "not known")
	form["width"][1], form["height"][1] = "40", "35"
	require.Equal(t, 422, post("990", form, "do", "save").status, "all three or none")
	form["depth"][1] = "301"
	require.Equal(t, 422, post("990", form, "do", "save").status)
	form["depth"][1] = "50"
	require.Equal(t, 303, post("990", form, "do", "save").status)
	_, form = r.layoutOf("990")
	require.Equal(t, []any{[]string{"", "40", "", ""}, []string{"", "35", "", ""}, []string{"", "50", "", ""}}, []any{form["width"], form["height"], form["depth"]})
	form["row"][1] = form["row"][0]
	form["column"][1] = form["column"][0]
	g = post("990", form, "do", "save")
	require.Equal(t, 422, g.status)
	require.Contains(t, g.body, "Another compartment of this shelf")

	_, form = r.layoutOf("88") // a delivery lies in compartment 3
	form["row"][2] = "30"
	g = post("88", form, "do", "save")
	require.Equal(t, 409, g.status)
	require.Contains(t, g.body, "A-3 (3)")
	require.Equal(t, 404, r.do("GET", "/console/cabinets/90/layout", nil).status)
	require.Equal(t, 404, post("90", form, "do", "save").status)
}

// In a real browser, on a telephone in the dark and on a desk: nothing that axe objects
// to in six languages, labels follow what is typed, and a keyboard is enough.
func TestLayoutPageInARealBrowser(t *testing.T) {
	r := layoutRig(t)
	r.signedIn()
	cookies, err := json.Marshal(r.cookies)
	require.NoError(t, err)
	languages := "en,zh-Hans,zh-Hant,fr,de,es"
	if !ring.Full() {
		languages = "en,de"
	}
	out := node(t, r.s, nil, "layout.mjs", withBrowser(t, []string{string(cookies), languages})...)
	var found struct {
		Axe      map[string][]string
		Console  []string
		Foreign  []string
		Overflow []string
		Live     []string
		Saved    []string
	}
	require.NoError(t, json.Unmarshal(out, &found))
	require.Len(t, found.Axe, 2*(strings.Count(languages, ",")+1)+1)
	for name, violations := range found.Axe {
		require.Empty(t, violations, name)
	}
	require.Empty(t, found.Console)
	require.Empty(t, found.Foreign)
	require.Empty(t, found.Overflow)
	require.Equal(t, []string{"A-4 1 · M", "A-1 2 · M", "A-2 3 · M", "A-3 4 · M"}, found.Live, "as they are typed")
	require.Equal(t, []string{"A-1 2 · M", "A-2 3 · M", "A-3 4 · M", "A-4 1 · M"}, found.Saved)
}
