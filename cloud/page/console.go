package page

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/oidc"
	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/protocol/wire"
)

// ConsolePath is where staff log in and see what stands.
const ConsolePath = "/console"

const (
	cookiePath  = "/" // of cookies; the interface does not look at them
	maxCabinets = 60
	maxRows     = 15
	guessedFor  = 7 * 24 * time.Hour // that a guessed parcel is shown
)

// SessionCookie holds the token of who uses the console.
const SessionCookie = "postern_session"

// staff see the drawn pages of the console, which show a whole business.
var staff = []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee}

// workers see the generated pages of the console, each the part that the account type
// and its rights allow. Drivers have their own app.
var workers = []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.Broker, cloud.Customer, cloud.PlatformAdmin}

// entrance is where people log in to some pages: its cookies go nowhere else.
type entrance struct {
	path          string
	session, form string // cookies
	site          fasthttp.CookieSameSite
	types         []cloud.AccountType // that may come in
}

// forStaff is the console's. Nothing leads to it from other sites.
var forStaff = entrance{cookiePath, SessionCookie, "postern_form", fasthttp.CookieSameSiteStrictMode, staff}

// forWork is the same entrance as the generated pages have it.
var forWork = entrance{cookiePath, SessionCookie, "postern_form", fasthttp.CookieSameSiteStrictMode, workers}

type loginPage struct {
	frame
	CSRF  string
	Email string
	Error string
	Next  string // page to go on with
	// Challenge is that of a login whose password was good: the page asks for a code
	// of the second factor.
	Challenge string
	Forgotten bool // leads to a link to a new password
	Passkeys  bool
	Providers []oidc.Provider
}

// session finds the account that is signed in. ok is false when there is none; a
// key, which may be narrowed to less than pages show, counts as none.
func (p *kit) session(c context.Context, ctx *fasthttp.RequestCtx, at *entrance) (s auth.Session, ok bool, err error) {
	s, ok, err = p.tokenOf(c, ctx, at)
	return s, ok && auth.Valid(s.Token, time.Now()) && lets(s, at), err
}

// tokenOf finds what the cookie of an entrance stands for, good or not.
func (p *kit) tokenOf(c context.Context, ctx *fasthttp.RequestCtx, at *entrance) (s auth.Session, ok bool, err error) {
	token := string(ctx.Request.Header.Cookie(at.session))
	if token == "" || len(token) > 256 {
		return s, false, nil
	}
	s, err = p.cfg.FindToken(c, auth.Hash(token))
	if errors.Is(err, cloud.ErrNotFound) {
		return s, false, nil
	}
	if err == nil && auth.Valid(s.Token, time.Now()) {
		peer.SetAccount(ctx, int64(s.Account.ID))
	}
	return s, err == nil, err
}

// lets reports whether a session is a person's whom an entrance is for.
func lets(s auth.Session, at *entrance) bool {
	return s.Token.Login() && s.Token.Kind != cloud.PassToken && !s.Suspended() && len(s.Token.Scopes) == 0 && s.Token.Profile == "" && s.Account.Enabled && slices.Contains(at.types, s.Account.Type)
}

// formToken is the secret that a form must bring back. The cookie holds it too,
// which another site can neither read nor set.
func (p *kit) formToken(ctx *fasthttp.RequestCtx, at *entrance) string {
	if t := string(ctx.Request.Header.Cookie(at.form)); len(t) == 32 {
		return t
	}
	if t, ok := ctx.UserValue("form " + at.form).(string); ok { // another form of this page
		return t
	}
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails
	t := base64.RawURLEncoding.EncodeToString(b[:])
	ctx.SetUserValue("form "+at.form, t)
	p.setCookie(ctx, at.form, t, at.path, 12*time.Hour, at.site)
	return t
}

// ownForm reports whether a form was sent from our own page.
func ownForm(ctx *fasthttp.RequestCtx, at *entrance) bool {
	cookie, field := ctx.Request.Header.Cookie(at.form), ctx.PostArgs().Peek("form")
	return sameSite(ctx) && len(cookie) == 32 && subtle.ConstantTimeCompare(cookie, field) == 1
}

// sameSite reports whether a browser sent a form from one of our own pages, as
// far as it says.
func sameSite(ctx *fasthttp.RequestCtx) bool {
	switch string(ctx.Request.Header.Peek("Sec-Fetch-Site")) {
	case "", "same-origin", "none":
		return true
	}
	return false
}

// attempt logs in with what a form holds: email and password, or a challenge and a
// code of the second factor. An error that the caller can mend comes back as
// a status with words and the error; challenge is that of the step to go on with.
func (p *kit) attempt(c context.Context, ctx *fasthttp.RequestCtx, at *entrance, lang string, try auth.Try) (l auth.Login, status int, problem, challenge string, err error) {
	field := func(name string) string { return string(ctx.PostArgs().Peek(name)) }
	try.Email, try.Password, try.IP = field("email"), field("password"), ctx.RemoteIP().String()
	challenge = field("challenge")
	switch {
	case len(try.Email) > maxField || len(try.Password) > maxField || len(try.ClientCode) > maxField || len(challenge) > maxField || len(field("otp")) > maxField:
		challenge, err = "", cloud.E(cloud.Unauthenticated, "INVALID_CREDENTIALS")
	case field("credential") != "":
		l, _, err = p.cfg.Gate.Passkey(c, auth.PasskeyTry{Credential: field("credential"), Challenge: challenge, Binding: bindingOf(ctx, at), Name: try.Name, Life: try.Life, IP: try.IP})
	case challenge != "":
		l, _, err = p.cfg.Gate.Second(c, auth.Step{Challenge: challenge, Code: field("otp"), IP: try.IP})
	default:
		l, _, err = p.cfg.Gate.Login(c, try)
	}
	shown := cloud.Shown(err)
	if shown == nil {
		return l, 0, "", "", err
	}
	status, problem = fasthttp.StatusUnauthorized, locale.Error(lang, shown.Code)
	if shown.RetryAfter > 0 {
		status = fasthttp.StatusTooManyRequests
		ctx.Response.Header.Set("Retry-After", fmt.Sprint(shown.RetryAfter))
	}
	switch shown.Code {
	case "SECOND_FACTOR_REQUIRED":
		if asked, ok := shown.Details["challenge"].(string); ok { // the password was good
			challenge, problem = asked, ""
		}
	case "CHALLENGE_EXPIRED":
		challenge = ""
	}
	return l, status, problem, challenge, err
}

const maxField = 256 // bytes of what is typed at a login

// bindingOf is what the challenge of a passkey is bound to: the browser that it was
// given to.
func bindingOf(ctx *fasthttp.RequestCtx, at *entrance) string {
	sum := sha256.Sum256(ctx.Request.Header.Cookie(at.form))
	return hex.EncodeToString(sum[:])
}

func (p consolePages) passkeyOptions(ctx *fasthttp.RequestCtx) {
	writePasskeyOptions(p.kit, ctx, &forStaff)
}

// writePasskeyOptions gives the script of a login page what it asks the browser for a
// passkey with, as JSON.
func writePasskeyOptions(p *kit, ctx *fasthttp.RequestCtx, at *entrance) {
	if !ownForm(ctx, at) {
		ctx.SetStatusCode(fasthttp.StatusForbidden)
		return
	}
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	challenge := string(ctx.PostArgs().Peek("challenge"))
	if len(challenge) > maxField {
		challenge = challenge[:maxField]
	}
	options, _, err := p.cfg.Gate.BeginPasskey(c, auth.PasskeyTry{Challenge: challenge, Binding: bindingOf(ctx, at), IP: ctx.RemoteIP().String()})
	var shown *cloud.Error
	switch {
	case errors.As(err, &shown) && shown.Kind == cloud.Limited:
		ctx.SetStatusCode(fasthttp.StatusTooManyRequests)
		ctx.Response.Header.Set("Retry-After", fmt.Sprint(shown.RetryAfter))
		return
	case errors.As(err, &shown) && shown.Kind != cloud.Internal:
		ctx.SetStatusCode(fasthttp.StatusConflict)
		return
	case err != nil:
		p.trouble(ctx, err)
		return
	}
	body, err := json.Marshal(options)
	if err != nil {
		p.trouble(ctx, err)
		return
	}
	ctx.SetContentType("application/json")
	ctx.SetBody(body)
}

func (p consolePages) loginForm(ctx *fasthttp.RequestCtx) {
	f := p.frame(ctx, "console.login")
	p.show(ctx, fasthttp.StatusOK, "login.html", loginPage{frame: f, CSRF: p.formToken(ctx, &forStaff), Next: nextPage(ctx.QueryArgs()), Forgotten: p.cfg.Mails, Passkeys: p.cfg.Passkeys, Providers: p.providers()})
}

func (p consolePages) login(ctx *fasthttp.RequestCtx) {
	f := p.frame(ctx, "console.login")
	challenge := ""
	again := func(status int, message string) {
		email := string(ctx.PostArgs().Peek("email"))
		if len(email) > maxField {
			email = ""
		}
		p.show(ctx, status, "login.html", loginPage{frame: f, CSRF: p.formToken(ctx, &forStaff), Email: email, Error: message, Next: nextPage(ctx.PostArgs()), Challenge: challenge, Forgotten: p.cfg.Mails, Passkeys: p.cfg.Passkeys, Providers: p.providers()})
	}
	if !ownForm(ctx, &forStaff) {
		again(fasthttp.StatusForbidden, f.T("console.expired"))
		return
	}
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	var l auth.Login
	var status int
	var problem string
	var err error
	l, status, problem, challenge, err = p.attempt(c, ctx, &forStaff, f.Lang, auth.Try{Name: "console"})
	switch {
	case status != 0:
		again(status, problem)
		return
	case err != nil:
		p.trouble(ctx, err)
		return
	}
	p.enter(ctx, l)
}

// enter keeps the token of a login in the browser and leads on.
func (p consolePages) enter(ctx *fasthttp.RequestCtx, l auth.Login) {
	p.setCookie(ctx, forStaff.session, l.Token, cookiePath, time.Until(l.ExpiresAt), fasthttp.CookieSameSiteLaxMode)
	p.setCookie(ctx, forStaff.form, "", cookiePath, 0, fasthttp.CookieSameSiteStrictMode)
	to := cmp.Or(nextPage(ctx.PostArgs()), homeOf(l.Account))
	if l.SetsUp || !slices.Contains(workers, l.Account.Type) {
		to = AccountPath
	}
	p.keepLanguage(ctx, l.Account.Locale)
	seeOther(ctx, to)
}

// homeOf is the page that an account begins with: for an employee who plans routes and
// has nothing to do with cabinets, the day board.
func homeOf(a cloud.Account) string {
	has := func(scope string) bool { return cloud.HasScope(a.Permissions, scope) }
	if a.Type == cloud.ClientEmployee && has("routes:read") && !has("lockers:read") {
		return dayPath
	}
	return ConsolePath
}

func seeOther(ctx *fasthttp.RequestCtx, to string) {
	ctx.Response.Header.Set("Location", to)
	ctx.SetStatusCode(fasthttp.StatusSeeOther)
}

func (p *kit) revoke(c context.Context, token string) {
	s, err := p.cfg.FindToken(c, auth.Hash(token))
	if err == nil {
		err = p.cfg.Auth.Revoke(c, s.Token)
	}
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		p.log.Error("revoke console token", "err", err)
	}
}

func (p consolePages) logout(ctx *fasthttp.RequestCtx) {
	if !ownForm(ctx, &forStaff) {
		p.message(ctx, fasthttp.StatusForbidden, "trouble.title", "console.expired")
		return
	}
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	if token := sessionToken(ctx); token != "" {
		p.revoke(c, token)
	}
	p.setCookie(ctx, forStaff.session, "", cookiePath, 0, fasthttp.CookieSameSiteLaxMode)
	p.setCookie(ctx, forStaff.form, "", cookiePath, 0, fasthttp.CookieSameSiteStrictMode)
	seeOther(ctx, ConsolePath+"/login")
}

func (p consolePages) console(ctx *fasthttp.RequestCtx) {
	c, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	v, ok := p.visitor(c, ctx)
	if !ok {
		return
	}
	v.Title = v.T("console.title")
	b, err := p.readHome(c, ctx, v)
	if err != nil {
		p.trouble(ctx, err)
		return
	}
	if b.Hours, err = p.drawDoors(c, ctx, v); err != nil {
		p.trouble(ctx, err)
		return
	}
	if p.mayAny(c, v, "orders.create") {
		b.NewOrder = ConsolePath + "/orders/new?type=D"
	}
	b.Hello = v.T("home.hello", v.c.Account.Name)
	followTopics(p.kit, ctx, &b.frame, fmt.Sprint("board:", int64(v.c.Account.BusinessID)))
	p.show(ctx, fasthttp.StatusOK, "console.html", b)
}

// readHome reads the sections of the home page that change while it is open.
func (p consolePages) readHome(c context.Context, ctx *fasthttp.RequestCtx, v visitor) (board, error) {
	b, err := p.board(c, v.frame, v.c)
	if err == nil {
		err = p.needs(c, ctx, v, &b)
	}
	return b, err
}

// board is everything the console shows at one moment.
type board struct {
	frame
	Cabinets   []cabinet
	More       bool
	Openings   []openingRow
	Deliveries []deliveryRow
	Webhooks   []webhookRow
	Sees       rights
	Hooks      bool   // there are pages about webhooks
	Adds       bool   // the visitor may add cabinets
	Failing    string // webhook deliveries that did not arrive

	Hello, Needs string // a greeting, and how many things need the visitor
	Todos        []todo // the first of them
	Figures      []figure
	Feeds        bool          // the visitor may read what happened
	Feed         []feedLine    // the newest first
	FeedAll      string        // address of more
	Sent         []sentLine    // what went to others today
	Drives       bool          // the visitor may read who drives
	Road         []roadLine    // drivers on duty
	Day          string        // address of the day board; "" where the visitor may not
	Hours        template.HTML // chart of doors by the hour of today; "" where the visitor may not
	NewOrder     string        // address of the form for an order; "" where the visitor may not
}

// rights are the parts of the console that its visitor may see: those whose
// operations of the interface the visitor may call.
type rights struct{ Lockers, Orders, Hooks, Asks, Chats bool }

// Any reports whether there is anything to see.
func (r rights) Any() bool { return r != rights{} }

func (p consolePages) rights(c context.Context, who cloud.Caller) rights {
	may := func(operation string) bool {
		o := p.cfg.Catalog.Find(operation)
		return o != nil && p.cfg.Pipeline.May(c, o, who) == nil
	}
	return rights{Lockers: may("smart_lockers.devices.find"), Orders: may("orders.list"), Hooks: may("webhook_logs.list"),
		Asks: p.cfg.Approvals != nil && may("approvals.list"), Chats: p.cfg.Chats && may("order_chat.conversations")}
}

type cabinet struct {
	ID       cloud.DeviceID
	Name     string
	Code     string
	Address  string
	Online   bool
	Since    *moment // online since, or last seen; nil: never
	Disabled bool
	Post     bool // a warehouse post, which has no doors
	Columns  [][]door
	Counts   []count
}

type count struct {
	Kind  string // door, of doors that were not read; grid
	State string
	N     int
}

// door is one door as it is drawn.
type door struct {
	GridCode, Name, Size string
	Number               uint
	Door, State          string // door status, compartment state
	Sign                 string // what stands out: open, jammed, unknown, never, blocked, occupied, reserved, cleaning, free
	Reason               string
	Guess                bool // no reading says that a free compartment is free
}

type (
	openingRow struct {
		Cabinet, Kind, State, Doors, Requester string
		At                                     *moment
	}
	deliveryRow struct {
		Number, Reference, Status, Cabinet string
		Packages                           int
		At                                 *moment
	}
)

// board reads what stands for a business, as far as who may see it.
func (p consolePages) board(c context.Context, f frame, who cloud.Caller) (board, error) {
	b, id := board{frame: f, Sees: p.rights(c, who)}, who.Account.BusinessID
	b.Adds = p.cfg.Setup != nil && p.cfg.Pipeline.May(c, p.cfg.Catalog.Find(addsCabinets), who) == nil
	var devices []cloud.Device
	var err error
	if b.Sees.Lockers {
		if devices, err = p.cfg.Store.ListDevices(c, id, 0, maxCabinets+1); err != nil {
			return b, fmt.Errorf("list cabinets: %w", err)
		}
	}
	if b.More = len(devices) > maxCabinets; b.More {
		devices = devices[:maxCabinets]
	}
	names := map[cloud.DeviceID]string{}
	err = p.cfg.Store.Look(c, func(v cloud.View) error {
		biz, err := v.Business(id)
		if err != nil {
			return err
		}
		b.Zone = biz.Location()
		b.Cabinets, b.Openings, b.Feed = nil, nil, nil
		for _, d := range devices {
			names[d.ID] = cmp.Or(d.Name, d.Code)
			if err := b.addCabinet(v, d); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return b, fmt.Errorf("read cabinets: %w", err)
	}
	return b, p.lists(c, &b, id, names)
}

// lists reads the tables below the cabinets.
func (p consolePages) lists(c context.Context, b *board, id cloud.BusinessID, names map[cloud.DeviceID]string) error {
	if b.Sees.Orders {
		guessed, err := p.cfg.Store.ListLockedParcels(c, id, b.Made.Add(-guessedFor), maxRows)
		if err != nil {
			return fmt.Errorf("list locked parcels: %w", err)
		}
		for _, g := range guessed {
			b.Todos = append(b.Todos, todo{Path: "/track/" + url.PathEscape(g.Number), Icon: "shield", Tone: "bad", Severity: wire.SeverityHigh, Headline: b.V("exception", "proof_locked") + ": " + g.Number, Next: b.T("todo.locked"), Since: b.Time(g.LockedAt)})
		}
	}
	if b.Sees.Lockers {
		if err := p.lockerLists(c, b, id, names); err != nil {
			return err
		}
	}
	if !b.Sees.Hooks {
		return nil
	}
	return p.webhooks(c, b, id)
}

// lockerLists reads the tables about cabinets.
func (p consolePages) lockerLists(c context.Context, b *board, id cloud.BusinessID, names map[cloud.DeviceID]string) error {
	deliveries, err := p.cfg.Deliveries(c, id, maxRows)
	if err != nil {
		return fmt.Errorf("list deliveries: %w", err)
	}
	for _, d := range deliveries {
		b.Deliveries = append(b.Deliveries, deliveryRow{d.Number, d.Reference, string(d.Status), names[d.DeviceID], len(d.Packages), b.Time(d.CreatedAt)})
	}
	return nil
}

// webhooks reads the newest rows of the business's webhook log.
func (p consolePages) webhooks(c context.Context, b *board, id cloud.BusinessID) error {
	rows, err := p.cfg.Store.ListBusinessOutbox(c, cloud.BusinessLog{BusinessID: id, Limit: maxRows})
	if err != nil {
		return fmt.Errorf("list webhook deliveries: %w", err)
	}
	for _, r := range rows {
		b.Webhooks = append(b.Webhooks, newWebhookRow(b.frame, r))
	}
	if b.Hooks = p.cfg.Receivers != nil; b.Hooks {
		failing, err := p.cfg.Store.CountFailing(c, id)
		if err != nil {
			return fmt.Errorf("count failing webhook deliveries: %w", err)
		}
		b.Failing = counted(failing)
	}
	return nil
}

func (b *board) addCabinet(v cloud.View, d cloud.Device) error {
	session, err := v.Session(d.ID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return err
	}
	x := cabinet{ID: d.ID, Name: cmp.Or(d.Name, d.Code), Code: d.Code, Address: d.Address, Online: session.Online, Disabled: d.Disabled, Post: d.IsPost()}
	if x.Online {
		x.Since = b.Time(session.ConnectedAt)
	} else {
		x.Since = b.Time(latest(session.LastSeenAt, d.LastSeenAt))
	}
	cells, err := v.Compartments(d.ID)
	if err != nil {
		return err
	}
	x.Columns, x.Counts = columns(b.frame, cells, x.Online, x.Since == nil)
	b.Cabinets = append(b.Cabinets, x)
	openings, err := v.RunningOpenings(d.ID)
	if err != nil {
		return err
	}
	for _, o := range openings {
		b.Openings = append(b.Openings, openingRow{x.Name, string(o.Kind), o.State, doorList(o, cells), o.Requester.Name, b.Time(o.RequestedAt)})
	}
	return b.addOpenings(v, x, cells)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func doorList(o cloud.Opening, cells []cloud.Compartment) string {
	out := ""
	for _, d := range o.Doors {
		name := fmt.Sprint(d.Door)
		if i := slices.IndexFunc(cells, func(c cloud.Compartment) bool { return c.Door == d.Door }); i >= 0 {
			name = cells[i].Name()
		}
		if out != "" {
			out += ", "
		}
		out += name
	}
	return out
}

// use is the state of a compartment as people see it, with why it is out of use: also where
// cabinet and cloud disagree about what lies inside.
func (f frame) use(state, blocked string, disagree bool) (shown, reason string) {
	switch {
	case disagree && blocked == "":
		return cloud.GridBlocked, f.V("exception", cloud.DevContentsMismatch)
	case blocked != "":
		return state, f.blockReason(blocked)
	}
	return state, ""
}

// columns puts compartments where they are: columns from the left, rows from
// the top. An offline cabinet's doors are not known: what is drawn is what it
// said last, and a closed door is not claimed. A door that was never read makes no
// free compartment; one of a cabinet that was never there says so.
func columns(f frame, cells []cloud.Compartment, online, never bool) ([][]door, []count) {
	cells = slices.DeleteFunc(slices.Clone(cells), func(c cloud.Compartment) bool { return c.IsRemoved() && c.DeliveryID == 0 })
	slices.SortFunc(cells, func(a, b cloud.Compartment) int {
		return cmp.Or(cmp.Compare(a.ShelfCode, b.ShelfCode), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Row, b.Row), cmp.Compare(a.Door, b.Door))
	})
	var out [][]door
	states := map[count]int{}
	for i, c := range cells {
		if i == 0 || c.ShelfCode != cells[i-1].ShelfCode || c.Column != cells[i-1].Column {
			out = append(out, nil)
		}
		status := c.DoorStatus
		if status == unread && never {
			status = neverRead
		}
		state, reason := f.use(c.State, c.BlockReason, c.OutOfUse())
		guess := state == cloud.GridFree && (status == unread || status == neverRead)
		if !online && status == "closed" {
			status = unread
		}
		d := door{Guess: guess, GridCode: c.GridCode, Name: c.Name(), Size: c.Size, Number: c.Door, Door: status, State: state, Sign: sign(status, state), Reason: reason}
		out[len(out)-1] = append(out[len(out)-1], d)
		kept := count{Kind: "grid", State: state}
		if guess {
			kept = count{Kind: "door", State: status}
		}
		states[kept]++
	}
	var counts []count
	for _, s := range []count{{Kind: "grid", State: cloud.GridFree}, {Kind: "grid", State: cloud.GridReserved}, {Kind: "grid", State: cloud.GridOccupied}, {Kind: "grid", State: cloud.GridBlocked},
		{Kind: "grid", State: cloud.GridCleaning}, {Kind: "door", State: unread}, {Kind: "door", State: neverRead}} {
		if n := states[s]; n > 0 {
			s.N = n
			counts = append(counts, s)
		}
	}
	return out, counts
}

// What doors without a reading have in place of a status: those of a cabinet that
// was there, and of one that never was.
const unread, neverRead = "unknown", "never"

// sign is the one thing about a door that matters most.
func sign(doorStatus, state string) string {
	switch doorStatus {
	case "open", "jammed":
		return doorStatus
	}
	if state == cloud.GridBlocked {
		return state
	}
	if doorStatus == neverRead {
		return neverRead
	}
	if doorStatus != "closed" {
		return unread
	}
	return state
}
