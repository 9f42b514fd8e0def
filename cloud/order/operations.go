package order

import (
	"github.com/postern-io/postern/cloud"
)

// operations are the operation types (interface 4.5). Their first digit is the
// channel.
var operations = map[int]string{
	1001: "created by rule or shop sync", 1002: "driver auto-assigned", 1003: "cancelled, unpaid", 1004: "route built automatically", 1005: "status set by tracking",
	2001: "driver accepted", 2002: "driver declined", 2003: "pickup started", 2004: "pickup done", 2005: "pickup failed",
	2006: "delivery started", 2007: "delivery done", 2008: "delivery failed", 2009: "marked ready for pickup", 2010: "proof uploaded", 2011: "duty on", 2012: "duty off",
	3001: "created", 3002: "edited", 3003: "cancelled", 3004: "deleted", 3005: "held", 3006: "released", 3010: "added to route", 3011: "removed from route",
	3012: "driver assigned", 3013: "driver unassigned", 3020: "status override", 3021: "rescheduled", 3030: "contractor assignment made",
	3031: "contractor assignment revoked", 3032: "contractor released", 3043: "interception requested", 3044: "interception outcome executed",
	3045: "interception withdrawn", 3060: "tracking number replaced", 3050: "proof file added", 3051: "proof file replaced", 3052: "proof file removed",
	4001: "received scan", 4002: "arrival scan", 4003: "outbound scan", 4004: "loaded on truck", 4005: "back to shelf", 4006: "held for interception",
	5001: "created by customer", 5002: "cancelled by customer", 5003: "address change requested", 5004: "customer interception requested",
	5005: "customer interception withdrawn", 6001: "created", 6002: "updated", 6003: "cancelled", 6004: "deleted", 6005: "held", 6006: "released",
	6007: "batch created", 6008: "note changed", 6009: "time window changed", 6010: "instruction changed", 6011: "rerouted to a new address",
	6012: "interception requested", 6013: "interception outcome executed", 6014: "interception withdrawn", 6020: "contractor assignment", 6021: "contractor revoke",
	6022: "contractor release", 6030: "route built", 7001: "doors opened", 7002: "deposit confirmed", 7003: "collected", 7004: "expired", 7005: "removed",
	8001: "third-party created", 8002: "third-party handed over", 8003: "third-party cancelled", 8010: "handoff protocol action",
}

// orderRenumbered is the operation type of a new number or link, whatever the
// channel.
const orderRenumbered = 3060

// Action is something that people do to an order by more than one channel. A 0 is
// the same as by the API.
type Action struct {
	Office, Customer, API int
}

var (
	actCreate   = Action{3001, 5001, 6001}
	actEdit     = Action{3002, 0, 6002}
	actNote     = Action{3002, 0, 6008}
	actWindow   = Action{3021, 0, 6009}
	actInstruct = Action{3002, 0, 6010}
	actCancel   = Action{3003, 5002, 6003}
	actDelete   = Action{3004, 0, 6004}
	actHold     = Action{3005, 0, 6005}
	actRelease  = Action{3006, 0, 6006}
	actReroute  = Action{3003, 5003, 6011}
)

// Operation is the operation type of an act by a caller: people at pages and apps work
// in the back office or the customer portal, everything else is the API.
func (a Action) Operation(c cloud.Caller) int {
	people := c.Surface == "web" || c.Surface == "app"
	switch {
	case people && c.Account.Type == cloud.Customer && a.Customer != 0:
		return a.Customer
	case people && c.Account.Type != cloud.Customer && a.Office != 0:
		return a.Office
	}
	return a.API
}

// channels are the first digits of operation types in words.
var channels = map[int]string{1: "system", 2: "driver_app", 3: "back_office", 4: "warehouse", 5: "customer", 6: "api", 7: "device", 8: "partner"}

// OperatorOf is who a caller is in an operation.
func OperatorOf(c cloud.Caller) cloud.Operator {
	if c.Anonymous() {
		return cloud.Operator{Type: "system"}
	}
	kind := "user"
	if c.Account.Type == cloud.DriverAccount {
		kind = "driver"
	}
	return cloud.Operator{Type: kind, ID: c.Account.ID, Name: c.Account.Name}
}
