package store

import (
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// What begins with a text lies between the text and the text with the last of all
// characters behind it, byte for byte and in small letters as the engine makes them.
const (
	lastCharacter = "\U0010FFFF"

	sqlFindByNumber = `SELECT ` + deliveryColumns + ` FROM delivery WHERE business_id = $1
AND LOWER(number) @bytewise >= LOWER(CAST($2 AS TEXT)) AND LOWER(number) @bytewise < LOWER(CAST($2 AS TEXT)) || $3 ORDER BY LOWER(number) @bytewise, id LIMIT $4`
	sqlFindByReference = `SELECT ` + deliveryColumns + ` FROM delivery WHERE business_id = $1 AND reference <> ''
AND LOWER(reference) @bytewise >= LOWER(CAST($2 AS TEXT)) AND LOWER(reference) @bytewise < LOWER(CAST($2 AS TEXT)) || $3 ORDER BY LOWER(reference) @bytewise, id LIMIT $4`
	sqlFindByPackage = `SELECT ` + deliveryColumns + ` FROM delivery WHERE business_id = $1 AND id IN (
  SELECT delivery_id FROM package WHERE LOWER(tracking_number) = LOWER(CAST($2 AS TEXT)) AND tracking_number <> '') ORDER BY id DESC LIMIT $3`
	sqlFindByRecipient = `SELECT ` + deliveryColumns + ` FROM delivery WHERE business_id = $1
AND LOWER(@called) @bytewise >= LOWER(CAST($2 AS TEXT)) AND LOWER(@called) @bytewise < LOWER(CAST($2 AS TEXT)) || $3 ORDER BY LOWER(@called) @bytewise DESC, id DESC LIMIT $4`
	sqlFindBySurname = `SELECT ` + deliveryColumns + ` FROM delivery WHERE business_id = $1
AND LOWER(@surname) @bytewise >= LOWER(CAST($2 AS TEXT)) AND LOWER(@surname) @bytewise < LOWER(CAST($2 AS TEXT)) || $3 ORDER BY LOWER(@surname) @bytewise DESC, id DESC LIMIT $4`
	sqlFindByPhone = `SELECT ` + deliveryColumns + ` FROM delivery WHERE business_id = $1
AND @digits @bytewise >= CAST($2 AS TEXT) AND @digits @bytewise < CAST($2 AS TEXT) || $3 ORDER BY @digits @bytewise DESC, id DESC LIMIT $4`
	sqlFindByRecipientPart = `SELECT ` + deliveryColumns + ` FROM delivery WHERE business_id = $1
AND id > COALESCE((SELECT id FROM delivery WHERE business_id = $1 ORDER BY id DESC LIMIT 1 OFFSET 2000), 0)
AND (LOWER(@called) LIKE $2 ESCAPE '!' OR $3 <> '' AND @digits LIKE $3 ESCAPE '!') ORDER BY id DESC LIMIT $4`
	sqlFindByName = `SELECT ` + accountColumns + ` FROM account WHERE business_id = $1 AND type = $2
AND LOWER(name) @bytewise >= LOWER(CAST($3 AS TEXT)) AND LOWER(name) @bytewise < LOWER(CAST($3 AS TEXT)) || $4 ORDER BY LOWER(name) @bytewise, id LIMIT $5`
	sqlFindByEmail = `SELECT ` + accountColumns + ` FROM account WHERE business_id = $1 AND type = $2 AND email <> ''
AND LOWER(email) @bytewise >= LOWER(CAST($3 AS TEXT)) AND LOWER(email) @bytewise < LOWER(CAST($3 AS TEXT)) || $4 ORDER BY LOWER(email) @bytewise, id LIMIT $5`
	sqlFindByPart = `SELECT ` + accountColumns + ` FROM account WHERE business_id = $1 AND type = $2
AND id > COALESCE((SELECT id FROM account WHERE business_id = $1 AND type = $2 ORDER BY id DESC LIMIT 1 OFFSET 2000), 0)
AND (LOWER(name) LIKE $3 ESCAPE '!' OR LOWER(email) LIKE $3 ESCAPE '!') ORDER BY id DESC LIMIT $4`
	sqlFindDoors = `SELECT d.id, d.name, d.code, d.address, c.grid_code, COALESCE(NULLIF(c.label, ''), c.grid_code) FROM device d JOIN compartment c ON c.device_id = d.id
WHERE d.business_id = $1 AND d.protocol <> 'mock' AND d.retired_at IS NULL AND (c.col <> 0 OR c.pickup_enabled)
AND (CAST($2 AS TEXT) = '' OR LOWER(d.name) = LOWER(CAST($2 AS TEXT)) OR LOWER(d.code) = LOWER(CAST($2 AS TEXT)))
AND (UPPER(c.grid_code) IN (` + doorSpellings + `) OR UPPER(c.label) IN (` + doorSpellings + `)) ORDER BY d.id, c.door LIMIT $3`
	doorSpellings = `$4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16`
)

// SearchDeliveries finds deliveries as cloud.SearchView says: first those that have a
// package of the number, then by number, then by reference, then by the recipient.
func (v lockerView) SearchDeliveries(b cloud.BusinessID, text string, limit int) (out []cloud.Delivery, err error) {
	add := func(sql string, args ...any) {
		if err != nil || len(out) >= limit {
			return
		}
		var found []cloud.Delivery
		found, err = list(v.ctx, v.q, sql, scanDelivery, append([]any{int64(b)}, args...)...)
		for _, d := range found {
			if err != nil || len(out) == limit {
				break
			}
			if slices.ContainsFunc(out, func(o cloud.Delivery) bool { return o.ID == d.ID }) {
				continue
			}
			d.Packages, err = list(v.ctx, v.q, sqlPackages, scanPackage, int64(d.ID))
			out = append(out, d)
		}
	}
	add(sqlFindByPackage, text, limit)
	for _, sql := range []string{sqlFindByNumber, sqlFindByReference, sqlFindByRecipient, sqlFindBySurname} {
		add(sql, text, lastCharacter, limit)
	}
	phone := phoneDigits(text)
	if phone != "" {
		add(sqlFindByPhone, phone, lastCharacter, limit)
		phone = like(phone)
	}
	add(sqlFindByRecipientPart, like(text), phone, limit)
	return out, err
}

// leastDigits are the digits that a text needs to be taken for a telephone number.
const leastDigits = 3

// phoneDigits are the digits of a text that is written as telephone numbers are; "" of any
// other.
func phoneDigits(text string) string {
	bare := strings.Map(func(r rune) rune {
		if strings.ContainsRune("+ -()./", r) {
			return -1
		}
		return r
	}, text)
	if len(bare) < leastDigits || strings.Trim(bare, "0123456789") != "" {
		return ""
	}
	return bare
}

// SearchDoors finds doors as cloud.SearchView says.
func (v lockerView) SearchDoors(b cloud.BusinessID, cabinet string, names []string, limit int) ([]cloud.DoorFound, error) {
	args := []any{int64(b), cabinet, limit}
	for i := range cloud.DoorSpellings {
		args = append(args, strings.ToUpper(names[min(i, len(names)-1)]))
	}
	return list(v.ctx, v.q, sqlFindDoors, func(x rows, d *cloud.DoorFound) error {
		return x.Scan(&d.DeviceID, &d.Name, &d.Code, &d.Address, &d.GridCode, &d.Door)
	}, args...)
}

// SearchAccounts finds accounts as cloud.SearchView says: first by name, then by email,
// then by a part of either.
func (v accountView) SearchAccounts(b cloud.BusinessID, t cloud.AccountType, text string, limit int) (out []cloud.Account, err error) {
	add := func(sql string, args ...any) {
		if err != nil || len(out) >= limit {
			return
		}
		var found []cloud.Account
		found, err = list(v.ctx, v.q, sql, scanAccount, append([]any{int64(b), string(t)}, args...)...)
		for _, a := range found {
			if len(out) < limit && !slices.ContainsFunc(out, func(o cloud.Account) bool { return o.ID == a.ID }) {
				out = append(out, a)
			}
		}
	}
	add(sqlFindByName, text, lastCharacter, limit)
	add(sqlFindByEmail, text, lastCharacter, limit)
	add(sqlFindByPart, like(text), limit)
	return out, err
}
