package cloud

import "slices"

// priceMembers are the members of a preview that are amounts or say something
// about amounts.
var priceMembers = []string{"shipping_price", "tax", "total_price", "currency", "price_details"}

// HidePrices gives a JSON value without its prices, at any depth; price_hidden
// is true beside where they would have been.
func HidePrices(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		out := map[string]any{}
		for name, x := range v {
			if slices.Contains(priceMembers, name) {
				out["price_hidden"] = true
			} else {
				out[name] = HidePrices(x)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = HidePrices(x)
		}
		return out
	}
	return v
}

// EffectsFor are effects as a caller may see them: without prices where those
// are hidden from the caller.
func EffectsFor(c Caller, effects []Effect) []Effect {
	out := slices.Clone(effects)
	if !c.PricesHidden(LocalDelivery) {
		return out
	}
	for i, e := range out {
		out[i].Before, _ = HidePrices(e.Before).(map[string]any)
		out[i].After, _ = HidePrices(e.After).(map[string]any)
	}
	return out
}

// PricesHidden reports whether a caller does not see the prices of a family of
// orders: customers from whom the business hides them, and accounts that
// only carry the goods.
func (c Caller) PricesHidden(family string) bool {
	switch c.Account.Type {
	case Broker, DriverAccount:
		return true
	}
	return c.Account.Type == Customer && slices.Contains(c.Account.PriceHidden, family)
}
