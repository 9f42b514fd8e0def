package page

import (
	"context"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/tracking"
)

// collectPanel is what a recipient with a parcel's link needs at the locker. Digits of a
// telephone number are no proof for it.
type collectPanel struct {
	frame
	Parcels []collectParcel
	Problem string // with the opening that was asked for
	Opened  bool   // doors have just been opened
	Pending bool   // the locker has not answered yet
	Token   string // as it was typed
}

type collectParcel struct {
	locker.ParcelBody
	Code  string // in two parts, "" while it does not work
	Doors string
	QR    template.HTML // of the code; "" while it does not work
}

// linkKey is the secret of a parcel's link that the visitor came by; "" without it.
func linkKey(ctx *fasthttp.RequestCtx) string {
	key := string(ctx.Request.Header.Cookie(keyCookie))
	if strings.Contains(key, ".") { // digits were right: as good for a day, but not for doors
		return ""
	}
	return key
}

// collectPanel reads what waits for the visitor; nil: nothing that a link opens.
func (p trackingPages) collectPanel(c context.Context, ctx *fasthttp.RequestCtx, f frame, out tracking.PublicOutput) (*collectPanel, error) {
	if p.cfg.Catalog == nil || linkKey(ctx) == "" || out.Device == nil || out.Access.Level != tracking.LevelRecipient {
		return nil, nil
	}
	list, err := runByLink[locker.ParcelsOutput](c, ctx, p.kit, f.Lang, "customer.parcels.list", map[string]any{"tracking_number": out.TrackingNumber})
	if err != nil {
		return nil, err
	}
	panel := &collectPanel{frame: f, Parcels: []collectParcel{}}
	switch string(ctx.QueryArgs().Peek("opened")) {
	case "1":
		panel.Opened = true
	case "0":
		panel.Pending = true
	}
	for _, x := range list.Parcels {
		row := collectParcel{ParcelBody: x, Doors: strings.Join(x.DoorNames, ", ")}
		if x.PickupCode != nil {
			row.Code = (*x.PickupCode)[:len(*x.PickupCode)/2] + " " + (*x.PickupCode)[len(*x.PickupCode)/2:]
		}
		if x.PickupQR != nil {
			if row.QR, err = drawQR(*x.PickupQR); err != nil {
				return nil, err
			}
		}
		panel.Parcels = append(panel.Parcels, row)
	}
	return panel, nil
}

// openTime is how long a page waits for doors.
const openTime = 25 * time.Second

// openParcel opens the doors of a parcel for its recipient: by the position that the browser
// gives, or by what the locker's screen shows.
func (p trackingPages) openParcel(ctx *fasthttp.RequestCtx) {
	c, cancel := visitFor(ctx, openTime)
	defer cancel()
	f, out, ok := p.parcel(c, ctx, "")
	if !ok {
		return
	}
	form := ctx.PostArgs()
	in := map[string]any{"delivery_number": string(form.Peek("delivery"))}
	if token := strings.TrimSpace(string(form.Peek("on_site_token"))); token != "" {
		in["on_site_token"] = token
	}
	for _, name := range []string{"latitude", "longitude"} {
		if x, err := strconv.ParseFloat(string(form.Peek(name)), 64); err == nil && !math.IsNaN(x) && !math.IsInf(x, 0) {
			in[name] = x
		}
	}
	got, err := runByLink[locker.ParcelOpenOutput](c, ctx, p.kit, f.Lang, "customer.parcels.open", in)
	if err == nil {
		opened := "1"
		if got.Pending {
			opened = "0"
		}
		seeOther(ctx, f.Path+"?opened="+opened)
		return
	}
	p.showParcel(c, ctx, f, out, nil, &notOpened{err, string(form.Peek("on_site_token"))})
}

// runByLink runs an operation for a recipient: the link that the visitor came by is its proof.
func runByLink[Out any](c context.Context, ctx *fasthttp.RequestCtx, p *kit, lang, operation string, in map[string]any) (Out, error) {
	a, err := answerBound(c, p, p.who(ctx, lang, ""), operation, catalog.Key{}, func(o *catalog.Operation) catalog.Bind {
		return func(x any) error {
			switch x := x.(type) {
			case *locker.ParcelsInput:
				x.Key = linkKey(ctx)
			case *locker.ParcelOpenInput:
				x.Key = linkKey(ctx)
			}
			return o.Values(in)(x)
		}
	})
	return answered[Out](operation, a, err)
}

// notOpened is why doors did not open for a recipient.
type notOpened struct {
	error
	token string
}

func (e *notOpened) Unwrap() error { return e.error }
