package fetchtest

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// ReadPost reads one request and leaves the connection open.
func ReadPost(c net.Conn) bool {
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err == nil {
		_, err = io.Copy(io.Discard, req.Body)
	}
	return err == nil
}
