package order

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/postern-io/postern/cloud"
)

// Tracking numbers are SR, eight digits and the GS1 mod-10 digit over them. The
// eight digits are the order's id, scattered: neighbours do not look alike and
// no two ids give the same.
const (
	numberPrefix = "SR"
	numberSpace  = 100_000_000
	scatter      = 61_803_399 // shares no factor with numberSpace
	scatterFrom  = 20_451_883
)

var errNumbersUsedUp = errors.New("all tracking numbers are given out")

// trackingNumber is the number of an order.
func trackingNumber(id cloud.OrderID) (string, error) {
	if id <= 0 || id >= numberSpace {
		return "", errNumbersUsedUp
	}
	digits := fmt.Sprintf("%08d", (int64(id)*scatter+scatterFrom)%numberSpace)
	return numberPrefix + digits + string('0'+checkDigit(digits)), nil
}

// checkDigit is the GS1 mod-10 check digit: digits weigh 3, 1, 3, … from the
// right.
func checkDigit(digits string) rune {
	sum := 0
	for i := range len(digits) {
		n := int(digits[len(digits)-1-i] - '0')
		if i%2 == 0 {
			n *= 3
		}
		sum += n
	}
	return rune((10 - sum%10) % 10)
}

// packageNumber is the number of an order's package, counted from 0.
func packageNumber(order string, i int) string { return order + "-" + strconv.Itoa(i+1) }
