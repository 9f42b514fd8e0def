package locker

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// proof is what shows that a caller is the recipient of a parcel: the key of its link, or
// else the account of a customer who is signed in.
type proof struct {
	caller cloud.Caller
	key    string
}

// byAccount reports whether the account is the proof: a key goes first.
func (p proof) byAccount() bool { return p.key == "" && p.caller.Account.Type == cloud.Customer }

// actor names the recipient in audit lines. A link names no account.
func (p proof) actor() string {
	if p.byAccount() {
		return p.caller.Account.ID.Actor()
	}
	return "anonymous"
}

// mailOf is the address of a customer who calls, as it is now and where it is proven; "" of
// any other caller. A business types the address of a customer, and may sign in as one by a
// password that it sets or by its own sign-in provider: neither shows who reads the mailbox.
func mailOf(v cloud.View, c cloud.Caller) (string, error) {
	if c.Account.Type != cloud.Customer {
		return "", nil
	}
	a, err := v.Account(c.Account.ID)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && (!a.Enabled || a.Type != cloud.Customer || a.BusinessID != c.Account.BusinessID || !a.IsMailProven()) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	others, err := v.IdentitiesOf(a.ID)
	if err != nil || len(others) > 0 {
		return "", err
	}
	return a.Email, nil
}

// isAddress reports whether a partner has written a mail address, in any case.
func isAddress(written, mail string) bool {
	return mail != "" && strings.ToLower(strings.TrimSpace(written)) == mail
}

// isRecipient reports whether a delivery is for the person of a business's account with a mail
// address. The sender of a parcel is not its recipient, nor is the person to whom a courier
// will bring it.
func isRecipient(d cloud.Delivery, b cloud.BusinessID, mail string) bool {
	return d.Livemode && d.BusinessID == b && !d.IsOutgoing() && isAddress(d.Recipient.Email, mail)
}

// isFor refuses with DELIVERY_NOT_FOUND a delivery that is not for the customer who calls,
// or of which nothing lies in a compartment; with DELIVERY_STATE_CONFLICT one that does not wait.
func isFor(v cloud.View, c cloud.Caller, d cloud.Delivery) error {
	mail, err := mailOf(v, c)
	switch {
	case err != nil:
		return err
	case !isRecipient(d, c.Account.BusinessID, mail) || waits(d) && !isInside(d):
		return cloud.E(cloud.NotFound, "DELIVERY_NOT_FOUND")
	case !waits(d):
		return conflict(d)
	}
	return nil
}

// isInside reports whether a package of a delivery lies in a compartment.
func isInside(d cloud.Delivery) bool {
	return slices.ContainsFunc(d.Packages, func(p cloud.Package) bool { return p.Status == cloud.PackageInCompartment })
}

// received is a delivery whose recipient has asked for something.
type received struct {
	cloud.Delivery
	partner cloud.Caller // whose delivery it is
	actor   string       // of audit lines
	// proven is asked once more in the decision.
	proven func(cloud.View, cloud.Delivery) error
}

// parcelOf is the delivery of a number that waits for the recipient whose proof p is. Errors:
// DELIVERY_NOT_FOUND, DELIVERY_STATE_CONFLICT when it does not wait.
func (s recipients) parcelOf(ctx context.Context, number string, p proof) (out received, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		d, err := v.DeliveryByNumber(strings.ToUpper(strings.TrimSpace(number)))
		if errors.Is(err, cloud.ErrNotFound) {
			return cloud.E(cloud.NotFound, "DELIVERY_NOT_FOUND")
		}
		if err != nil {
			return err
		}
		out.Delivery, out.actor = d, p.actor()
		if out.proven, err = s.prove(v, d, p); err != nil {
			return err
		}
		out.partner.Provider, err = v.Provider(d.ProviderID)
		return err
	})
	return out, err
}

// FindParcel is the delivery of a number that waits for the recipient who calls: by the key
// of the link of one of its parcels, or signed in as a customer. Errors: DELIVERY_NOT_FOUND,
// DELIVERY_STATE_CONFLICT when it does not wait.
func (s recipients) FindParcel(ctx context.Context, c cloud.Caller, number, key string) (cloud.DeliveryID, error) {
	of, err := s.parcelOf(ctx, number, proof{c, key})
	return of.ID, err
}
