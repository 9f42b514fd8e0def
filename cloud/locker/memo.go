package locker

import "github.com/postern-io/postern/cloud"

// memo is a View that reads what a decision needs again and again once: owners,
// endpoints, places of compartments, recent orders. The rows that it read must not be changed.
type memo struct {
	cloud.View
	businesses map[cloud.BusinessID]cloud.Business
	providers  map[cloud.ProviderID]cloud.Provider
	endpoints  map[cloud.ProviderID][]cloud.Endpoint
	devices    map[cloud.DeviceID]cloud.Device
	places     map[uint]cloud.Compartment // of one device
	cabinets   map[cloud.DeviceID][]cloud.Compartment
	recent     map[cloud.DeviceID][]cloud.Command
}

func newMemo(v cloud.View, d cloud.Device) *memo {
	return &memo{View: v, businesses: map[cloud.BusinessID]cloud.Business{}, providers: map[cloud.ProviderID]cloud.Provider{},
		endpoints: map[cloud.ProviderID][]cloud.Endpoint{}, devices: map[cloud.DeviceID]cloud.Device{d.ID: d}, places: map[uint]cloud.Compartment{},
		cabinets: map[cloud.DeviceID][]cloud.Compartment{}, recent: map[cloud.DeviceID][]cloud.Command{}}
}

func once[K comparable, V any](m map[K]V, k K, read func(K) (V, error)) (V, error) {
	if v, ok := m[k]; ok {
		return v, nil
	}
	v, err := read(k)
	if err == nil {
		m[k] = v
	}
	return v, err
}

func (m *memo) Business(id cloud.BusinessID) (cloud.Business, error) {
	return once(m.businesses, id, m.View.Business)
}

func (m *memo) Provider(id cloud.ProviderID) (cloud.Provider, error) {
	return once(m.providers, id, m.View.Provider)
}

func (m *memo) Endpoints(id cloud.ProviderID) ([]cloud.Endpoint, error) {
	return once(m.endpoints, id, m.View.Endpoints)
}

func (m *memo) Device(id cloud.DeviceID) (cloud.Device, error) {
	return once(m.devices, id, m.View.Device)
}

func (m *memo) Compartment(d cloud.DeviceID, door uint) (cloud.Compartment, error) {
	return once(m.places, door, func(n uint) (cloud.Compartment, error) { return m.View.Compartment(d, n) })
}

func (m *memo) Compartments(d cloud.DeviceID) ([]cloud.Compartment, error) {
	return once(m.cabinets, d, m.View.Compartments)
}

func (m *memo) RecentOrders(d cloud.DeviceID) ([]cloud.Command, error) {
	return once(m.recent, d, m.View.RecentOrders)
}
