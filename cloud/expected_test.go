package cloud

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// present is a View of one device and one order.
type present struct {
	View
	device Device
	order  Order
}

func (p present) Device(DeviceID) (Device, error)          { return p.device, nil }
func (p present) Order(BusinessID, OrderID) (Order, error) { return p.order, nil }

func TestMarksStandForWhatPeopleDecideAbout(t *testing.T) {
	t.Parallel()
	marks := func(v present, c *Changes) string {
		p := &Preview{}
		require.NoError(t, p.Take(v, c))
		return p.Marks().Digest(nil)
	}
	v := present{device: Device{ID: 7, Code: "F-1", Name: "Front"}, order: Order{ID: 1, Number: "A", Note: "x"}}
	renamed, held := &Changes{DeviceChanges: DeviceChanges{Devices: []Device{{ID: 7, Code: "F-1", Name: "Back"}}}}, &Changes{OrderChanges: OrderChanges{Orders: []Order{{ID: 1, Number: "A", Note: "y"}}}}
	device, order := marks(v, renamed), marks(v, held)
	require.NotEqual(t, device, order)

	v.device.LastSeenAt, v.device.CodesHeld, v.device.Firmware = time.Now(), 9, "2"
	require.Equal(t, device, marks(v, renamed), "a device speaks all the time")
	v.device.Name = "Side"
	require.NotEqual(t, device, marks(v, renamed))
	v.order.Instruction = "Leave it"
	require.NotEqual(t, order, marks(v, held), "any other state of the thing is another one")
	require.Equal(t, Marks(nil).Digest(nil), Marks{}.Digest(nil))
	require.Equal(t, Marks(nil).Digest(nil), marks(v, &Changes{AuditChanges: AuditChanges{Audits: []Audit{{}}}}), "what follows of itself is none")
}

// missing is a View of one order, one business and nothing else.
type missing struct{ View }

func (missing) Order(BusinessID, OrderID) (Order, error) { return Order{ID: 1}, nil }
func (missing) WebhookSettings(BusinessID, AccountID) (WebhookSettings, error) {
	return WebhookSettings{}, ErrNotFound
}
func (missing) Approval(BusinessID, ApprovalID) (Approval, error) { return Approval{}, ErrNotFound }
func (missing) ChatMessage(BusinessID, ChatMessageID) (ChatMessage, error) {
	return ChatMessage{}, ErrNotFound
}
func (missing) Business(BusinessID) (Business, error)           { return Business{Name: "Acme"}, nil }
func (missing) Provider(ProviderID) (Provider, error)           { return Provider{}, ErrNotFound }
func (missing) Account(AccountID) (Account, error)              { return Account{}, ErrNotFound }
func (missing) Token([32]byte) (Token, error)                   { return Token{}, ErrNotFound }
func (missing) Device(DeviceID) (Device, error)                 { return Device{}, ErrNotFound }
func (missing) Compartment(DeviceID, uint) (Compartment, error) { return Compartment{}, ErrNotFound }
func (missing) Delivery(DeliveryID) (Delivery, error)           { return Delivery{}, ErrNotFound }
func (missing) Command(string) (Command, error)                 { return Command{}, ErrNotFound }
func (missing) DeviceOrder(BusinessID, DeviceOrderID) (DeviceOrder, error) {
	return DeviceOrder{}, ErrNotFound
}
func (missing) Interception(BusinessID, InterceptionID) (Interception, error) {
	return Interception{}, ErrNotFound
}
func (missing) Assignment(BusinessID, AssignmentID) (Assignment, error) {
	return Assignment{}, ErrNotFound
}
func (missing) ThirdParty(BusinessID, ThirdPartyID) (ThirdPartyAssignment, error) {
	return ThirdPartyAssignment{}, ErrNotFound
}
func (missing) Route(BusinessID, RouteID) (Route, error) { return Route{}, ErrNotFound }

func (missing) FindRow(Row) (Row, error) { return nil, ErrNotFound }

// A preview of a member that it has no rule for names its kind: what is written
// is never called nothing.
func TestPreviewsNameEveryKindThatChanges(t *testing.T) {
	t.Parallel()
	var all Changes
	for member := range all.each {
		var c Changes
		for m, v := range c.each {
			if m.Name != member.Name {
				continue
			}
			switch v.Kind() {
			case reflect.Slice:
				v.Set(reflect.MakeSlice(v.Type(), 1, 1))
				if v.Type().Elem() == reflect.TypeFor[Row]() {
					v.Index(0).Set(reflect.ValueOf(Invitation{}))
				}
			case reflect.Map:
				v.Set(reflect.MakeMap(v.Type()))
				v.SetMapIndex(reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem())
			case reflect.Pointer:
				v.Set(reflect.New(v.Type().Elem()))
			case reflect.Int64:
				v.SetInt(1)
			default:
				if v.Type() != reflect.TypeFor[time.Time]() {
					v = v.Field(0) // of OAuthDrop
				}
				v.Set(reflect.ValueOf(time.Unix(1, 0)))
			}
		}
		p := &Preview{}
		require.NoError(t, p.Take(missing{}, &c), member.Name)
		require.Equal(t, c.Empty() || member.Name == "Audits", len(p.Effects()) == 0, member.Name)
	}
	p := &Preview{}
	require.NoError(t, p.Take(missing{}, &Changes{ChatChanges: ChatChanges{Conversations: []Conversation{{}}, ChatReads: []ChatRead{{}}}}))
	require.Len(t, p.Effects(), 2)
	require.Equal(t, []string{"conversation", "chat_read"}, []string{p.Effects()[0].Type, p.Effects()[1].Type})
	require.Equal(t, Marks{}, p.Marks(), "kinds alone bind nobody")
}
