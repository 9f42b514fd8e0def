package order

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// packageNumber is the number of an order's package, counted from 0.
func packageNumber(order string, i int) string { return order + "-" + strconv.Itoa(i+1) }

// orderNumber is the number of the order that a package's number begins with, "" for a
// text that is no package's number.
func orderNumber(text string) string {
	i := strings.LastIndexByte(text, '-')
	if i <= 0 || strings.Trim(text[i+1:], "0123456789") != "" {
		return ""
	}
	return text[:i]
}

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
