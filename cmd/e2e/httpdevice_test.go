package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

// dropBox is the program httpdevice, and what a person before it sees.
type dropBox struct {
	t    *testing.T
	args []string
	cmd  *exec.Cmd
	in   io.WriteCloser

	mu    sync.Mutex
	doors map[string]string // by number: how it stands
	swung map[string]int    // and how often it opened
	said  []string
}

func (d *dropBox) start(bin programs) {
	d.t.Helper()
	d.cmd = exec.Command(filepath.Join(string(bin), "httpdevice"), d.args...)
	d.cmd.Stderr = os.Stderr
	var err error
	d.in, err = d.cmd.StdinPipe()
	require.NoError(d.t, err)
	out, err := d.cmd.StdoutPipe()
	require.NoError(d.t, err)
	require.NoError(d.t, d.cmd.Start())
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			d.mu.Lock()
			if f := strings.Fields(lines.Text()); len(f) == 3 && f[0] == "door" {
				if d.doors[f[1]] = f[2]; f[2] == "open" {
					d.swung[f[1]]++
				}
			}
			d.said = append(d.said, lines.Text())
			d.mu.Unlock()
		}
	}()
}

func (d *dropBox) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

func (d *dropBox) type_(line string) {
	_, err := fmt.Fprintln(d.in, line)
	require.NoError(d.t, err)
}

// open lists the doors that stand open.
func (d *dropBox) open() (out []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n, state := range d.doors {
		if state == "open" {
			out = append(out, n)
		}
	}
	return out
}

func (d *dropBox) swings() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.swung {
		n += k
	}
	return n
}

func (d *dropBox) closeAll() {
	for _, n := range d.open() {
		d.type_("close " + n)
	}
}

// A small device that only speaks HTTP takes a parcel and gives it out: remotely, with its
// codes, and over a start of its program. Each door opens as often as it was to.
func TestADeviceThatSpeaksHTTP(t *testing.T) {
	bin := build(t)
	box := sandboxOf(t, bin)
	admin, partner := person{box.BaseURL, box.Admin.Token, "en"}, person{box.BaseURL, box.Provider.Token, "en"}
	made := admin.do(t, "POST", "/api/v1/smart-lockers/devices", map[string]any{"device_name": "Drop box", "device_code": "DROP-1", "layout": "small", "protocol": "http"})
	require.Equal(t, http.StatusCreated, made.status, "%v", made.body)
	id := int64(made.at("device", "device_id").(float64))
	d := &dropBox{t: t, doors: map[string]string{}, swung: map[string]int{},
		args: []string{"--cloud", box.BaseURL, "--code", "DROP-1", "--token", made.at("enrolment", "token").(string), "--file", filepath.Join(t.TempDir(), "drop.json")}}
	d.start(bin)
	t.Cleanup(func() { d.kill() })
	status := func() any {
		return admin.do(t, "GET", "/api/v1/smart-lockers/devices/"+strconv.FormatInt(id, 10), nil).at("device", "status")
	}
	ring.Await(t, func() bool { return status() == "online" })

	create := func(ref string) (string, string) {
		a := partner.do(t, "POST", "/api/v1/third-party-delivery/deliveries", map[string]any{"reference_number": ref, "device_id": id,
			"packages": []any{map[string]any{"tracking_number": "PK-" + ref, "size": "S"}}, "recipient": map[string]any{"name": "Ana", "email": "ana@example.com"}})
		require.Equal(t, http.StatusCreated, a.status, "%v", a.body)
		return fmt.Sprint(int64(a.at("delivery", "delivery_id").(float64))), a.at("delivery", "delivery_code").(string)
	}
	state := func(delivery string) any {
		return partner.do(t, "GET", "/api/v1/third-party-delivery/deliveries/"+delivery, nil).at("delivery", "status")
	}

	// From afar.
	first, _ := create("H-1")
	a := partner.do(t, "POST", "/api/v1/third-party-delivery/deliveries/"+first+"/open-doors", map[string]any{"wait_seconds": 20})
	require.Equal(t, http.StatusOK, a.status, "%v", a.body)
	require.Len(t, d.open(), 1)
	require.Equal(t, "doors_opened", state(first))
	time.Sleep(time.Second)
	d.closeAll()
	ring.Await(t, func() bool { return state(first) == "delivered" })
	code := partner.do(t, "GET", "/api/v1/third-party-delivery/deliveries/"+first, nil).at("delivery", "pickup_code").(string)

	// With a code at the keypad; a wrong one opens nothing.
	second, deliveryCode := create("H-2")
	d.type_("code 999999")
	d.type_("code " + deliveryCode)
	ring.Await(t, func() bool { return len(d.open()) == 1 })
	d.closeAll()
	ring.Await(t, func() bool { return state(second) == "delivered" })
	require.Equal(t, 2, d.swings())

	// The recipient, as the program starts again.
	d.kill()
	d.start(bin)
	ring.Await(t, func() bool { return len(d.doors) > 0 })
	time.Sleep(2 * time.Second)
	require.Empty(t, d.open(), "a start opens nothing")
	d.type_("scan PU:DROP-1:" + code)
	ring.Await(t, func() bool { return len(d.open()) == 1 })
	d.closeAll()
	ring.Await(t, func() bool { return state(first) == "picked_up" })
	require.Equal(t, 3, d.swings())
	require.Equal(t, "delivered", state(second))
}
