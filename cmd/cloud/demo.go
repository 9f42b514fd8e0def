package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/internal/wholefile"
	"github.com/postern-io/postern/protocol/wire"
)

// demoData adds a sandbox to the database, whatever that holds.
type demoData struct {
	To         string `help:"File, for its owner alone, to write what is in the sandbox to; one that is there is left as it is. Empty: standard output." placeholder:"FILE"`
	WebhookURL string `name:"webhook-url" help:"Where the sandbox's partner takes events; empty: nowhere." placeholder:"URL"`
}

// The sandbox's cabinets. The first one and the kiosk are wired in configs/.
var demoDevices = []struct {
	code, name, kind, board string
	doors                   uint
	latitude, longitude     float64
	address, postalCode     string
	test                    bool
}{
	{"CAB-1001", "Union Station", "smart_locker", "A", 12, 43.6453, -79.3806, "65 Front St W, Toronto", "M5J 1E6", false},
	{"CAB-1002", "Kensington Market", "smart_locker", "A", 8, 43.6547, -79.4005, "160 Baldwin St, Toronto", "M5T 3K7", false},
	{"KSK-1003", "Harbourfront kiosk", "kiosk", "A", 4, 43.6387, -79.3817, "235 Queens Quay W, Toronto", "M5J 2G8", false},
	{"TEST-1004", "Test cabinet", "smart_locker", "A", 4, 43.6446, -79.3449, "124 Front St W, Toronto", "M5J 2L7", true},
}

// The sandbox's deliveries: device, reference and tracking numbers.
var demoDeliveries = []struct {
	device    int
	reference string
	packages  []string
}{
	{0, "DEMO-1", []string{"SWP-DEMO-0001"}},
	{0, "DEMO-2", []string{"SWP-DEMO-0002", "SWP-DEMO-0003"}},
	{0, "DEMO-3", []string{"SWP-DEMO-0004"}},
	{1, "DEMO-4", []string{"SWP-DEMO-0005"}},
	{1, "DEMO-5", []string{"SWP-DEMO-0006"}},
	{2, "DEMO-6", []string{"SWP-DEMO-0007"}},
}

func (d demoData) run(ctx context.Context, s settings, log *slog.Logger, stdout io.Writer) error {
	if err := d.reserve(); err != nil {
		return fmt.Errorf("demo-data: %w", err)
	}
	srv, err := server.New(ctx, s.server(log))
	if err != nil {
		return errors.Join(err, d.unreserve())
	}
	box, err := d.fill(ctx, srv, s.baseURL())
	if errors.Is(err, cloud.ErrExists) {
		err = errors.New("the sandbox is there already: a business, person or cabinet of it exists. Its secrets were printed when it was made; cloud setup --email admin@acme.example gives its administrator a new password")
	}
	if err = errors.Join(err, closeAll(srv)); err != nil {
		return fmt.Errorf("demo-data: %w", errors.Join(err, d.unreserve()))
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetIndent("", "  ")
	if err := enc.Encode(box); err != nil {
		return err
	}
	if d.To != "" {
		return wholefile.Replace(d.To, out.Bytes())
	}
	_, err = out.WriteTo(stdout)
	return err
}

// reserve makes the empty file that is written to, before anything is in the database: a file
// of an earlier sandbox holds secrets that are nowhere else.
func (d demoData) reserve() error {
	if d.To == "" {
		return nil
	}
	f, err := os.OpenFile(d.To, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already and is left as it is: it may hold the secrets of a sandbox that was made before", d.To)
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// unreserve takes away the file that reserve made.
func (d demoData) unreserve() error {
	if d.To == "" {
		return nil
	}
	return os.Remove(d.To)
}

// baseURL is where people find this node.
func (s settings) baseURL() string {
	switch {
	case s.BaseURL != "":
		return s.BaseURL
	case s.Listen == "":
		return ""
	case s.Listen == usualListen:
		return usualPage
	case s.Listen[0] == ':':
		return "http://localhost" + s.Listen
	}
	return "http://" + s.Listen
}

func (d demoData) fill(ctx context.Context, srv *server.Server, baseURL string) (server.Sandbox, error) {
	cfg := server.SandboxConfig{WebhookURL: d.WebhookURL, BaseURL: baseURL, Passwords: true}
	for _, x := range demoDevices {
		dev := server.SandboxDevice{Code: x.code, Name: x.name, Type: x.kind, Latitude: x.latitude, Longitude: x.longitude, Address: x.address, PostalCode: x.postalCode, Country: "CA", Test: x.test}
		for n := uint(1); n <= x.doors; n++ {
			dev.Layout = append(dev.Layout, wire.LayoutDoor{Door: n, Board: x.board, Channel: n, Size: demoSize(n, x.doors), Display: n, Label: fmt.Sprintf("A-%d", n)})
		}
		cfg.Devices = append(cfg.Devices, dev)
	}
	box, err := srv.Sandbox(ctx, cfg)
	if err != nil {
		return box, err
	}
	for _, x := range demoDeliveries {
		in := locker.CreateInput{ReferenceNumber: x.reference, DeviceID: box.Devices[x.device].DeviceID, Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"}}
		for _, p := range x.packages {
			in.Packages = append(in.Packages, locker.PackageInput{TrackingNumber: p, Size: "M"})
		}
		if _, err := srv.Lockers.Create(ctx, box.ProviderCaller, in); err != nil {
			return box, fmt.Errorf("create delivery %s: %w", x.reference, err)
		}
		box.TrackingNumbers = append(box.TrackingNumbers, x.packages...)
	}
	return box, nil
}

// demoSize mixes sizes: half the doors M, a quarter each S and L.
func demoSize(n, doors uint) string {
	switch {
	case n <= doors/4:
		return "S"
	case n > doors-doors/4:
		return "L"
	}
	return "M"
}
