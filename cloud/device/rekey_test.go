package device_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// hold takes what is on its way and confirms a list.
func hold(d *devicetest.Device, list uint64) {
	d.List = list
	d.Status(nil)
	synctest.Wait()
	for len(d.Codes) > 0 {
		<-d.Codes
	}
}

func secretsOf(t *testing.T, w *devicetest.World, d *devicetest.Device) (c locker.CodeSecrets) {
	t.Helper()
	w.Look(func(v cloud.View) error {
		row, err := v.Device(d.ID)
		if err != nil {
			return err
		}
		c, err = locker.OpenSecrets(w.Server.Box, row.SealedCode)
		return err
	})
	return c
}

// "A change sends the whole list again."
func TestChangedCodeParametersSendTheWholeListAnew(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		one, two := create(w, "R-1", "CAB-1", "PK-1"), create(w, "R-2", "CAB-1", "PK-2")
		_, err := w.Lockers.Cancel(context.Background(), w.Box.ProviderCaller, locker.CancelInput{Delivery: "ref:R-2"})
		require.NoError(t, err)
		hold(d, 6)
		version, err := w.Lockers.Configure(context.Background(), d.ID, func(c *wire.Config) error {
			c.Texts = map[string]string{"a": "b"}
			return nil
		})
		require.NoError(t, err)
		require.EqualValues(t, 2, version)
		time.Sleep(10 * time.Second)
		require.Empty(t, d.Codes, "nothing about codes has changed")

		_, err = w.Lockers.Configure(context.Background(), d.ID, func(c *wire.Config) error { c.Codes.Passes = 2; return nil })
		require.NoError(t, err)
		for c := devicetest.Wait(t, "configuration", d.Config); c.Version < 3; {
			c = devicetest.Wait(t, "configuration", d.Config)
			if c.Version == 3 {
				require.EqualValues(t, 2, c.Codes.Passes)
			}
		}
		secrets := secretsOf(t, w, d)
		require.EqualValues(t, 2, secrets.Params.Passes)
		for range 2 { // and again until it is confirmed
			c := devicetest.Wait(t, "the whole list", d.Codes)
			require.EqualValues(t, 0, c.From)
			require.EqualValues(t, 8, c.To)
			require.Len(t, c.Entries, 2)
			for i, e := range c.Entries {
				require.EqualValues(t, 7+i, e.Number)
				require.Equal(t, one.DeliveryNumber, e.DeliveryRef)
				code := *one.DeliveryCode
				if e.Kind == wire.CodePickup {
					code = pickupCode(t, w, one.DeliveryNumber)
				}
				require.Equal(t, passcode.Verifier(code, secrets.Salt, secrets.Key, secrets.Params), e.Verifier)
			}
		}
		require.NotEqual(t, one.DeliveryNumber, two.DeliveryNumber)
		hold(d, 8)
		time.Sleep(10 * time.Second)
		require.Empty(t, d.Codes)
		create(w, "R-3", "CAB-1", "PK-3")
		require.EqualValues(t, 8, devicetest.Wait(t, "tail", d.Codes).From)

		_, err = w.Lockers.Configure(context.Background(), d.ID, func(c *wire.Config) error { c.Codes.Passes = 0; return nil })
		require.ErrorContains(t, err, "code parameters")
	})
}

// pickupCode is the pickup code that the recipient receives.
func pickupCode(t *testing.T, w *devicetest.World, number string) (code string) {
	t.Helper()
	w.Look(func(v cloud.View) error {
		d, err := v.DeliveryByNumber(number)
		if err != nil {
			return err
		}
		b, err := w.Server.Box.Open("delivery-codes", d.SealedCodes)
		if err != nil {
			return err
		}
		var codes locker.Codes
		err = json.Unmarshal(b, &codes)
		code = codes.Pickup
		return err
	})
	require.Len(t, code, 6)
	return code
}

// Partners go on making deliveries while a cabinet enrols: none of them may be
// left with a verifier that was made with the former secrets.
func TestDeliveriesMadeDuringAnEnrolmentHaveTheNewVerifiers(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		ctx := context.Background()
		create(w, "R-0", "CAB-1", "PK-0")
		token, row := device.NewToken(d.ID, time.Now().UTC())
		require.NoError(t, w.Store.Decide(ctx, d.ID, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{DeviceChanges: cloud.DeviceChanges{Enrolments: []cloud.EnrolmentToken{row}}}, nil
		}))
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() { create(w, fmt.Sprint("R-", i+1), "CAB-1", fmt.Sprint("PK-", i+1)) })
		}
		_, err := w.Devices.Enrol(ctx, w.Store, device.Enrolment{Code: "CAB-1", Token: token}, func(ctx context.Context, id cloud.DeviceID, x device.Secrets, decide func(cloud.View) (*cloud.Changes, error)) error {
			params := wire.CodeParams{MemoryKiB: 8, Passes: 3}
			return w.Lockers.Rekey(ctx, id, locker.CodeSecrets{Salt: x.Salt, Key: x.Key, Params: params}, decide)
		})
		require.NoError(t, err)
		wg.Wait()
		devicetest.Wait(t, "end of the connection with the former secret", d.Closed)
		secrets := secretsOf(t, w, d)
		var rows []cloud.CodeRow
		w.Look(func(v cloud.View) (err error) { rows, err = v.CodeRows(d.ID, 0, 100); return err })
		require.Len(t, rows, 8)
		for _, r := range rows {
			if r.Entry.Kind == wire.CodePickup {
				require.Equal(t, passcode.Verifier(pickupCode(t, w, r.Entry.DeliveryRef), secrets.Salt, secrets.Key, secrets.Params), r.Entry.Verifier, r.Entry.DeliveryRef)
			}
		}
	})
}

// A delivery that was given up and is tried again after its cabinet was given
// other secrets has codes that the cabinet takes.
func TestCodesThatComeBackAfterNewSecretsAreMadeAnew(t *testing.T) {
	bubble(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		one := create(w, "R-1", "CAB-1", "PK-1")
		_, err := w.Lockers.Fail(context.Background(), w.Box.ProviderCaller, locker.FailInput{Delivery: "ref:R-1", FailureCode: "OTHER"})
		require.NoError(t, err)
		_, err = w.Lockers.Configure(context.Background(), d.ID, func(c *wire.Config) error { c.Codes.Passes = 2; return nil })
		require.NoError(t, err)
		hold(d, 5)
		none := 0
		_, err = w.Lockers.OpenDoors(context.Background(), w.Box.ProviderCaller, locker.OpenInput{Delivery: "ref:R-1", WaitSeconds: &none})
		require.NoError(t, err)
		secrets := secretsOf(t, w, d)
		c := devicetest.Wait(t, "codes", d.Codes)
		set := 0
		for _, e := range c.Entries {
			if e.Op != wire.CodeSet {
				continue
			}
			set++
			code := *one.DeliveryCode
			if e.Kind == wire.CodePickup {
				code = pickupCode(t, w, one.DeliveryNumber)
			}
			require.Equal(t, passcode.Verifier(code, secrets.Salt, secrets.Key, secrets.Params), e.Verifier)
		}
		require.Equal(t, 2, set)
	})
}
