package api_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern"
	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/internal/browsertest"
	"github.com/postern-io/postern/internal/ring"
)

// screensFolder is the environment variable that names the folder for pictures of the main
// pages: docs/screens is made with it.
const screensFolder = "POSTERN_SCREENS"

// maxScreen is how large a picture may be, in bytes.
const maxScreen = 120_000

// The main pages of a business that is at work have no error in a real browser; their
// pictures are those of docs/screens, made anew with
//
//	POSTERN_RING=check POSTERN_SCREENS=$PWD/docs/screens go test ./cloud/api -run TestScreens
func TestScreens(t *testing.T) {
	folder := os.Getenv(screensFolder)
	if folder == "" && !ring.Full() {
		t.Skip("full ring: opens the main pages in a browser")
	}
	if folder == "" {
		folder = t.TempDir()
	}
	chromium, node := browsertest.Tools(t)
	x := newWorld(t)
	x.atWork()
	x.pages.Interface = func() []byte { return x.table.OpenAPI("https://cloud.example.com", "1.0.0") }
	x.pages.Changelog = postern.Changelog
	d := newDesk(t, x)
	cmd := exec.CommandContext(t.Context(), node, "screens.mjs", d.listen(), x.signIn("admin", x.token(admin)).session, folder, chromium,
		"home=/console", "cabinet=/console/cabinets/88", "parcel=/console/parcels/64021", "orders=/console/orders", "work=/console/work", "audit=/console/audit",
		"day=/console/day", "reports@1280-dark=/console/reports", "reports-phone@390-light=/console/reports", "docs=/docs/operations/work_items.snooze")
	cmd.Dir, cmd.Stderr = "../page/browser", t.Output()
	out, err := cmd.Output()
	require.NoError(t, err)
	var found struct {
		Console, Cut []string
		Status       map[string]int
	}
	require.NoError(t, json.Unmarshal(out, &found))
	require.Empty(t, found.Console)
	require.Empty(t, found.Cut, "tables of Home at 1440 pixels")
	require.Len(t, found.Status, 10)
	for name, status := range found.Status {
		require.Equal(t, 200, status, name)
		require.LessOrEqual(t, shrink(t, filepath.Join(folder, name+".png")), maxScreen, name)
	}
}

// shrink writes a picture again with at most 256 of its colours, those that it has most
// of, and gives its size in bytes.
func shrink(t *testing.T, file string) int {
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	from, err := png.Decode(bytes.NewReader(raw))
	require.NoError(t, err)
	count, b := map[color.RGBA]int{}, from.Bounds()
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(from.At(x, y)).(color.RGBA) }
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	all := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var palette color.Palette // of colours that an eye tells apart
	for _, c := range all {
		near := func(o color.Color) bool {
			o2 := o.(color.RGBA)
			r, g, b := int(c.R)-int(o2.R), int(c.G)-int(o2.G), int(c.B)-int(o2.B)
			return r*r+g*g+b*b < 24
		}
		if len(palette) < 256 && !slices.ContainsFunc(palette, near) {
			palette = append(palette, c)
		}
	}
	index := map[color.RGBA]uint8{}
	for _, c := range all {
		index[c] = uint8(palette.Index(c))
	}
	to := image.NewPaletted(b, palette)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			to.SetColorIndex(x, y, index[at(x, y)])
		}
	}
	var out bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to))
	require.NoError(t, os.WriteFile(file, out.Bytes(), 0o644))
	return out.Len()
}

// atWork gives the business a week of work: three cabinets, parcels by the hour, orders by
// the day, routes, webhooks and what waits for people. Names and numbers are the same each
// time; times are those before now.
func (x *world) atWork() {
	t, w := x.t, x.w
	r := rand.New(rand.NewPCG(20261125, 5))
	now := time.Now().UTC().Truncate(time.Minute)
	for id, name := range map[cloud.AccountID]string{1: "Robin Hale", 2: "Mia Chen", 3: "Harbour Couriers", 4: "Sam Lee", 5: "Bloom Flowers"} {
		var a cloud.Account
		require.NoError(t, w.DB.Look(t.Context(), func(v cloud.View) (err error) { a, err = v.Account(id); return err }))
		a.Name = name
		w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}}})
	}
	ch := cloud.Changes{}
	mall := w.Device
	mall.ID, mall.Code, mall.Name, mall.Address = 91, "TOR-EATON-03", "Eaton Centre North", "220 Yonge St, Toronto ON M5B 2H1, CA"
	ch.Devices = []cloud.Device{mall}
	ch.Sessions = []cloud.Session{{DeviceID: 91, Generation: 1, Node: "test", Online: true, ConnectedAt: now.Add(-40 * time.Hour), LastSeenAt: now}, {DeviceID: 88, Generation: 1, Node: "test", Online: true, ConnectedAt: now.Add(-3 * time.Hour), LastSeenAt: now}}
	for i := range 12 {
		c := cloud.Compartment{GridID: cloud.GridID(9101 + i), DeviceID: 91, GridCode: fmt.Sprintf("B%02d", i+1), ShelfCode: "A", Door: uint(i + 1), PickupNumber: i + 1, Column: 1 + i/4, Row: 1 + i%4, Size: "M", PickupEnabled: true, DoorStatus: "closed", State: cloud.GridFree}
		if i%3 != 1 {
			c.State = cloud.GridOccupied
		}
		ch.Compartments = append(ch.Compartments, c)
	}
	people := []string{"Jonas Weber", "Inès Moreau", "Chloe Lindqvist", "Farid Haddad", "Grace Okafor", "Hiroshi Tanaka", "Elena Petrova", "Bruno Bianchi"}
	hours := []int{8, 9, 9, 10, 10, 11, 12, 12, 13, 15, 16, 17, 17, 17, 18, 18, 19}
	for i := range 320 {
		day := now.AddDate(0, 0, -(i % 9))
		in := time.Date(day.Year(), day.Month(), day.Day(), hours[r.IntN(len(hours))]+5, r.IntN(60), 0, 0, time.UTC)
		if in.After(now.Add(-3 * time.Hour)) {
			continue
		}
		taken := in.Add(time.Duration(20+r.IntN(40*60)) * time.Minute)
		if h := taken.In(w.Business.Location()).Hour(); h < 7 {
			taken = taken.Add(time.Duration(8+r.IntN(3)) * time.Hour)
		}
		c := cloud.Delivery{ID: cloud.DeliveryID(63000 + i), Number: fmt.Sprintf("LD-%09d", 63000+i), BusinessID: 42, ProviderID: 17, DeviceID: []cloud.DeviceID{88, 91}[i%2], Reference: fmt.Sprintf("SWP-%d", 4000+i), Status: cloud.DeliveryPickedUp,
			Recipient: cloud.Recipient{Name: people[i%len(people)], Phone: "+1 416 555 0100"}, CollectWithin: 72 * time.Hour, Livemode: true, RequestHash: []byte{1}, CreatedAt: in.Add(-6 * time.Hour), DoorsOpenedAt: in.Add(-time.Minute), DepositedAt: in,
			Packages: []cloud.Package{{TrackingNumber: fmt.Sprintf("SWP%d", 100300000+i), Status: cloud.PackagePickedUp, Size: "M"}}}
		if taken.Before(now) {
			c.PickedUpAt = taken
		} else {
			c.Status, c.Packages[0].Status = cloud.DeliveryDelivered, cloud.PackageInCompartment
		}
		ch.Deliveries = append(ch.Deliveries, c)
	}
	for i := range 3 {
		at := now.Add(-time.Duration(20+30*i) * time.Hour)
		ch.Exceptions = append(ch.Exceptions, cloud.Exception{ID: cloud.ExceptionID(20 + i), BusinessID: 42, DeviceID: []cloud.DeviceID{91, 88, 91}[i], DeliveryID: cloud.DeliveryID(63000 + i), GridCode: []string{"B03", "A09", "B06"}[i], Source: fmt.Sprint("s", i), Type: []string{"overdue", "door_jammed", "deposit_unverified"}[i],
			Severity: []string{"medium", "high", "medium"}[i], Status: "open", OpenedAt: at})
	}
	w.Write(t, ch)
	address := func(name string) *cloud.Address {
		return &cloud.Address{Name: name, Phone: "+14165550123", Line1: "100 Queen St W", City: "Toronto", Province: "ON", PostalCode: "M5H 2N2", Country: "CA"}
	}
	var orders []cloud.Order
	for i := range 240 {
		back := i%10 - 2
		day := now.In(w.Business.Location()).AddDate(0, 0, -back)
		status := cloud.OrderDelivered
		switch {
		case back <= 0:
			status = []cloud.OrderStatus{cloud.OrderNew, cloud.OrderReady, cloud.OrderDriverAssigned, cloud.OrderDelivered, cloud.OrderOutForDelivery}[i/10%5]
		case i%17 == 0:
			status = cloud.OrderDeliveryFailed
		case i%29 == 0:
			status = cloud.OrderCancelled
		}
		made := now.Add(-time.Duration(240-i) * 20 * time.Minute)
		orders = append(orders, cloud.Order{ID: cloud.OrderID(5000 + i), BusinessID: 42, Number: fmt.Sprintf("PK%09d", 700100+i), Ref: fmt.Sprintf("SO-%d", 11000+i), Type: cloud.DeliveryOrder, Status: status, ScheduledDate: day.Format(time.DateOnly),
			Recipient: address(people[i%len(people)]), Packages: []cloud.OrderPackage{{ID: cloud.PackageID(15000 + i), Number: fmt.Sprintf("PK%09d-1", 700100+i), Quantity: 1, Weight: 2.5, WeightUnit: "kg"}}, CreatedAt: made, UpdatedAt: made})
	}
	w.Write(t, cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: orders}})
	for hour := range 9 * 24 {
		_, err := w.DB.NoteHealth(t.Context(), []cloud.EndpointTally{{EndpointID: 5, Hour: now.Unix()/3600 - int64(hour), Attempts: 12 + hour*7%19, Failures: hour * 5 % 3, SucceededAt: now}})
		require.NoError(t, err)
	}
	today := now.In(w.Business.Location()).Format(time.DateOnly)
	for i, name := range []string{"Downtown morning", "Harbour afternoon"} {
		route := x.id(at(x.made("POST", "/api/v1/routes", x.token(admin), fmt.Sprintf(`{"date":%q,"driver_id":4,"name":%q}`, today, name)), "route", "route_id"))
		x.made("POST", "/api/v1/routes/"+route+"/orders", x.token(admin), fmt.Sprintf(`{"order_ids":[%d,%d]}`, 5002+i*100, 5012+i*100))
	}
}
