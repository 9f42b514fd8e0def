package order

import (
	"net/url"
	"strconv"

	"github.com/postern-io/postern/cloud"
)

// packageNumber is the number of an order's package, counted from 0.
func packageNumber(order string, i int) string { return order + "-" + strconv.Itoa(i+1) }

// trackingURL is the page of an order. It opens nothing that the number does not.
func trackingURL(c cloud.Caller, number string) string { return c.BaseURL + "/track/" + number }

// recipientLink is the page of an order with the secret that shows it to its
// recipient; nil for callers who may not change orders.
func (s *shower) recipientLink(o cloud.Order) *string {
	secret := s.links.OfOrder(o.ID, o.LinkGeneration)
	if secret == "" || !mayShare(s.c) {
		return nil
	}
	link := trackingURL(s.c, o.Number) + "?k=" + url.QueryEscape(secret)
	return &link
}

// mayShare reports whether a caller may change the order, and so give it to its
// recipient.
func mayShare(c cloud.Caller) bool {
	switch c.Account.Type {
	case cloud.ClientAdmin, cloud.ClientEmployee, cloud.Customer:
		return c.HasScope("orders:write")
	}
	return false
}
