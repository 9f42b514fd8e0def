package storetest

import (
	"fmt"

	"github.com/postern-io/postern/cloud"
)

// OldNumber is a tracking number of the form before, computed from the order's
// id, for tests whose answers are compared byte by byte: SR, eight digits and
// their GS1 check digit.
func OldNumber(id cloud.OrderID) string {
	digits := fmt.Sprintf("%08d", (int64(id)*61_803_399+20_451_883)%100_000_000)
	sum := 0
	for i := range len(digits) {
		n := int(digits[len(digits)-1-i] - '0')
		if i%2 == 0 {
			n *= 3
		}
		sum += n
	}
	return fmt.Sprintf("SR%s%d", digits, (10-sum%10)%10)
}
