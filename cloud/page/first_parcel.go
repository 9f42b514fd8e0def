package page

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/account"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/locker"
)

// A first parcel is sent the way a partner sends one. One press makes a provider
// named for it, where there is none, a token of that provider for an hour, and with
// that token a delivery: each an operation of the interface, with the rights of the
// person who pressed. The token and the delivery's number are in a cookie of that
// browser, which alone sees the codes.
const (
	addsProvider    = "providers.create"
	parcelCookie    = "postern_parcel"
	parcelLife      = time.Hour
	parcelProvider  = "first-parcel"
	parcelName      = "First parcel"
	providersAtOnce = 200
)

// parcelPage is a first parcel on its way, or the button that sends one.
type parcelPage struct {
	frame
	CSRF    string
	Cabinet cabinetName
	Try     string // names this press of the button: a second one of it sends nothing more
	Problem string
	Sent    bool

	Status        string
	Running       bool // more is to come
	Door          uint
	Number        string
	Code          string // that is to be typed now; "" when none is
	Screen, Doors string // addresses on the person's machine
	Steps         []parcelStep
}

// parcelStep is one thing that happens to a first parcel.
type parcelStep struct {
	Name string
	At   *moment // nil: not yet
	Now  bool    // comes next
}

// sentParcel is what the cookie of a first parcel holds.
type sentParcel struct{ delivery, token string }

var parcelForm = regexp.MustCompile(`^([0-9]{1,18})\.([A-Za-z0-9_-]{20,128})$`)

func sentOf(ctx *fasthttp.RequestCtx) (s sentParcel, ok bool) {
	m := parcelForm.FindStringSubmatch(string(ctx.Request.Header.Cookie(parcelCookie)))
	if m == nil {
		return s, false
	}
	return sentParcel{m[1], m[2]}, true
}

// firstParcel shows the first parcel of this browser at a cabinet.
func (p setupPages) firstParcel(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, d, ok := p.doorsOf(c, ctx, "parcel.title")
	if !ok {
		return
	}
	page := p.newParcelPage(ctx, v, d)
	if sent, ok := sentOf(ctx); ok {
		out, err := runAs[locker.DeliveryOutput](c, ctx, p.kit, v.Lang, sent.token, "third_party.deliveries.find", map[string]any{"id": sent.delivery})
		var shown *cloud.Error
		switch {
		case err == nil && out.Delivery.DeviceID == d.DeviceID:
			page.fill(out.Delivery, d, p.places(ctx, d.DeviceID, d.Status == "online"))
		case err == nil || errors.As(err, &shown) && (shown.Kind == cloud.Unauthenticated || shown.Kind == cloud.NotFound):
			p.setCookie(ctx, parcelCookie, "", page.Cabinet.Path(), 0, fasthttp.CookieSameSiteStrictMode) // it is over
		default:
			p.refused(ctx, v, err)
			return
		}
	}
	p.show(ctx, fasthttp.StatusOK, "parcel.html", page)
}

func (p setupPages) newParcelPage(ctx *fasthttp.RequestCtx, v visitor, d locker.DeviceBody) parcelPage {
	var try [10]byte
	_, _ = rand.Read(try[:]) // never fails
	return parcelPage{frame: v.frame, CSRF: p.formToken(ctx, &forStaff), Cabinet: nameCabinet(d.DeviceID, d.DeviceCode, d.DeviceName), Try: hex.EncodeToString(try[:])}
}

// fill puts what became of the delivery into the page.
func (x *parcelPage) fill(d locker.DeliveryBody, at locker.DeviceBody, where places) {
	x.Sent, x.Status = true, string(d.Status)
	x.Screen, x.Doors = "http://"+where.screen, "http://"+where.simulator
	for _, parcel := range d.Packages {
		x.Number = parcel.TrackingNumber
		for _, g := range at.Grids {
			if parcel.GridID != nil && g.GridID == *parcel.GridID {
				x.Door = g.Door
			}
		}
	}
	switch d.Status {
	case cloud.DeliveryCreated:
		x.Code = shownCode(d.DeliveryCode)
	case cloud.DeliveryDelivered:
		x.Code = shownCode(d.PickupCode)
	}
	x.Running = slices.Contains([]cloud.DeliveryStatus{cloud.DeliveryCreated, cloud.DeliveryDoorsOpened, cloud.DeliveryCorrecting, cloud.DeliveryDelivered}, d.Status)
	for i, s := range []struct {
		name string
		at   *string
	}{{"parcel.announced", d.CreatedAt}, {"parcel.opened", d.DoorsOpenedAt}, {"parcel.inside", d.DepositedAt}, {"parcel.collected", d.PickedUpAt}} {
		step := parcelStep{Name: x.T(s.name), At: x.Time(stamp(s.at))}
		step.Now = step.At == nil && x.Running && (i == 0 || x.Steps[i-1].At != nil)
		x.Steps = append(x.Steps, step)
	}
}

// shownCode is a code in groups that people read.
func shownCode(code *string) string {
	if code == nil {
		return ""
	}
	if half := len(*code) / 2; half > 0 {
		return (*code)[:half] + " " + (*code)[half:]
	}
	return *code
}

var tryForm = regexp.MustCompile(`^[0-9a-f]{20}$`)

// sendFirstParcel sends a first parcel and leads to its page.
func (p setupPages) sendFirstParcel(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, d, ok := p.doorsOf(c, ctx, "parcel.title")
	if !ok {
		return
	}
	page := p.newParcelPage(ctx, v, d)
	if !ownForm(ctx, &forStaff) {
		page.Problem = page.T("console.expired")
		p.show(ctx, fasthttp.StatusForbidden, "parcel.html", page)
		return
	}
	if !connectionOf(d).Online { // its codes would reach no cabinet
		page.Problem = page.T("connection.waits")
		p.show(ctx, fasthttp.StatusConflict, "parcel.html", page)
		return
	}
	if try := string(ctx.PostArgs().Peek("try")); tryForm.MatchString(try) {
		page.Try = try
	}
	sent, err := p.send(c, ctx, v, d.DeviceID, page.Try)
	var shown *cloud.Error
	switch {
	case errors.As(err, &shown) && (shown.Kind == cloud.Conflict || shown.Kind == cloud.Invalid):
		page.Problem = locale.Error(page.Lang, shown.Code)
		p.show(ctx, statusOf(shown), "parcel.html", page)
	case err != nil:
		p.refused(ctx, v, err)
	default:
		p.setCookie(ctx, parcelCookie, sent.delivery+"."+sent.token, page.Cabinet.Path(), parcelLife, fasthttp.CookieSameSiteStrictMode)
		seeOther(ctx, page.Cabinet.Path()+"/parcel")
	}
}

// send makes what a first parcel needs. try is its reference: the same one twice is
// one delivery.
func (p setupPages) send(c context.Context, ctx *fasthttp.RequestCtx, v visitor, device cloud.DeviceID, try string) (s sentParcel, err error) {
	provider, err := p.provider(c, ctx, v)
	if err != nil {
		return s, err
	}
	now := time.Now()
	token, err := run[account.TokenOutput](c, ctx, p.kit, v, "providers.tokens.create", map[string]any{"id": strconv.FormatInt(int64(provider), 10), "name": parcelName,
		"expires_at": now.Add(parcelLife).UTC().Format(time.RFC3339)})
	if err != nil {
		return s, err
	}
	out, err := runAs[locker.DeliveryOutput](c, ctx, p.kit, v.Lang, token.Token, "third_party.deliveries.create", map[string]any{
		"reference_number": "first-" + try, "device_id": device, "packages": []map[string]any{{"tracking_number": "FIRST-" + strings.ToUpper(try[:10])}},
		"recipient": map[string]any{"name": v.c.Account.Name, "email": v.c.Account.Email}, "notify": map[string]any{"sms": false, "email": false},
		// One that is left lying gives its compartment back within two days.
		"deliver_before": now.UTC().Truncate(24 * time.Hour).Add(48 * time.Hour).Format(time.RFC3339)})
	if err != nil {
		_, ended := run[account.Done](c, ctx, p.kit, v, "providers.tokens.revoke", map[string]any{"id": strconv.FormatInt(int64(provider), 10), "token_id": strconv.FormatInt(int64(token.Made.ID), 10)})
		return s, errors.Join(err, ended)
	}
	return sentParcel{fmt.Sprint(out.Delivery.DeliveryID), token.Token}, nil
}

// provider finds the provider of first parcels, or makes it.
func (p setupPages) provider(c context.Context, ctx *fasthttp.RequestCtx, v visitor) (cloud.ProviderID, error) {
	for page, total := 1, 1; (page-1)*providersAtOnce < total; page++ {
		list, err := run[account.ProvidersOutput](c, ctx, p.kit, v, "providers.list", map[string]any{"page": page, "per_page": providersAtOnce, "sort": "code"})
		if err != nil {
			return 0, err
		}
		for _, x := range list.Providers {
			if x.Code == parcelProvider {
				return x.ID, nil
			}
		}
		total = list.Total
	}
	made, err := run[account.ProviderOutput](c, ctx, p.kit, v, addsProvider, map[string]any{"code": parcelProvider, "name": parcelName, "services": []string{"locker"}, "livemode_allowed": true})
	return made.Provider.ID, err
}
