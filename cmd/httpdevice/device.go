package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

type door struct {
	Door  uint   `json:"door"`
	State string `json:"state"`
}

type report struct {
	Seq   uint64 `json:"seq"`
	Doors []door `json:"doors"`
}

type device struct {
	base, instance string
	kept           struct { // in the file
		Code   string           `json:"device_code"`
		Secret string           `json:"device_secret"`
		Keys   []wire.PinnedKey `json:"keys"`
	}
	sending sync.Mutex
	mu      sync.Mutex
	doors   []door
	reports []report // not taken yet, in their order
	seq     uint64
	moved   map[uint]uint64   // number of the report of each door's newest move
	done    map[string]string // outcomes of orders of this start
	clock   time.Duration     // the cloud's time less ours
}

// call makes a signed call.
func (d *device) call(method, path string, in, out any) error {
	body := []byte{}
	if in != nil {
		body, _ = json.Marshal(in)
	}
	path += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + "instance=" + d.instance
	at, nonce := fmt.Sprint(time.Now().Unix()), rand.Text()
	h := hmac.New(sha256.New, []byte(d.kept.Secret))
	fmt.Fprintf(h, "%s.%s.%s.%s.%s", at, nonce, method, path, body)
	r, err := http.NewRequest(method, d.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, v := range map[string]string{"X-Device-Code": d.kept.Code, "X-Device-Timestamp": at, "X-Device-Nonce": nonce, "X-Device-Signature": hex.EncodeToString(h.Sum(nil)), "Content-Type": "application/json"} {
		r.Header.Set(name, v)
	}
	return answer(r, out)
}

func answer(r *http.Request, out any) error {
	resp, err := (&http.Client{Timeout: 40 * time.Second}).Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s %s %w", r.Method, r.URL.Path, resp.Status, b, err)
	}
	return json.Unmarshal(b, out)
}

// note puts a report of how the doors stand in line, after those that are named have moved.
func (d *device) note(moved ...uint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seq++
	for _, n := range moved {
		d.moved[n] = d.seq
	}
	d.reports = append(d.reports, report{Seq: d.seq, Doors: append([]door{}, d.doors...)})
}

// send sends the reports that wait.
func (d *device) send() error {
	d.sending.Lock()
	defer d.sending.Unlock()
	for {
		d.mu.Lock()
		if len(d.reports) == 0 {
			d.mu.Unlock()
			return nil
		}
		next := d.reports[0]
		d.mu.Unlock()
		if err := d.call("POST", "/api/v1/devices/doors/report", next, &struct{}{}); err != nil {
			return err
		}
		d.mu.Lock()
		d.reports = d.reports[1:]
		d.mu.Unlock()
	}
}

// hasMoved reports whether a door has moved since a report.
func (d *device) hasMoved(doors []uint, seq uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(doors, func(n uint) bool { return d.moved[n] > seq })
}

// obey carries out an order, once. seq is the report that the call for it named: a door that has
// moved since is not opened, as a person may have used it already.
func (d *device) obey(envelope []byte, seq uint64) (id, outcome string) {
	var c wire.Command
	var open wire.OpenDoors
	if err := signed.PinnedKeys(d.kept.Keys).Open(signed.ForCommand, envelope, &c); err != nil || c.DeviceCode != d.kept.Code {
		return "", ""
	}
	switch {
	case d.done[c.CommandID] != "":
		return c.CommandID, d.done[c.CommandID]
	case time.Now().Add(d.clock).UnixNano() >= c.ExpiresAt:
		outcome = "refused"
	case c.Kind == wire.CmdOpenDoors && (wire.Decode(c.Body, &open) != nil || d.hasMoved(open.Doors, seq)):
		outcome = "refused"
	case c.Kind == wire.CmdOpenDoors:
		for _, n := range open.Doors {
			d.move(n, "open") // a real device pulses its lock here, and its switch says the rest
		}
		outcome = "done"
	default:
		fmt.Println(c.Kind)
		outcome = "done"
	}
	d.done[c.CommandID] = outcome
	return c.CommandID, outcome
}

// turn says how the doors stand, sets the clock and carries out what the cloud wants.
func (d *device) turn() error {
	if err := d.send(); err != nil {
		return err
	}
	nonce, began := []byte(rand.Text()), time.Now()
	var beat struct{ Time []byte }
	var now wire.Time
	if err := d.call("POST", "/api/v1/devices/heartbeat", map[string]any{"firmware": "httpdevice 1", "nonce": nonce}, &beat); err != nil {
		return err
	}
	if err := signed.PinnedKeys(d.kept.Keys).Open(signed.ForTime, beat.Time, &now); err != nil || !bytes.Equal(now.Nonce, nonce) || time.Since(began) > 5*time.Second {
		return fmt.Errorf("no time from the cloud: %w", err)
	}
	d.clock = time.Until(time.Unix(0, now.ServerTime)) + time.Since(began)/2
	var list struct {
		Awaits   bool `json:"awaits_report"`
		Commands []struct{ Envelope []byte }
	}
	d.mu.Lock()
	seq := d.seq
	d.mu.Unlock()
	path := fmt.Sprintf("/api/v1/devices/commands?wait=20&seq=%d", seq)
	if err := d.call("GET", path, nil, &list); err != nil {
		return err
	}
	if list.Awaits {
		d.note()
	}
	for _, c := range list.Commands {
		if err := d.send(); err != nil { // what moved while the call waited
			return err
		}
		if id, outcome := d.obey(c.Envelope, seq); id != "" {
			if err := d.call("POST", "/api/v1/devices/commands/"+id+"/ack", map[string]string{"outcome": outcome}, &struct{}{}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *device) begin(code, token, file string) error {
	if b, err := os.ReadFile(file); err == nil {
		return json.Unmarshal(b, &d.kept)
	}
	body, _ := json.Marshal(map[string]string{"device_code": code, "token": token})
	r, err := http.NewRequest("POST", d.base+"/api/v1/devices/enrol", bytes.NewReader(body))
	if err == nil {
		r.Header.Set("Content-Type", "application/json")
		err = answer(r, &d.kept)
	}
	if err != nil {
		return err
	}
	b, _ := json.Marshal(d.kept)
	return os.WriteFile(file, b, 0o600)
}
