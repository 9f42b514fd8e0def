package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// beat is the time between two messages.
const beat = 6 * time.Second

// talk is what driver and recipient say about one order that is out for delivery.
type talk struct {
	order int64
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu   sync.Mutex
	said int
}

// lines is what is said, the recipient first and then by turns.
var lines = []string{
	"Hello, when will you be here?", "In about ten minutes, two stops before yours.",
	"The bell is broken, please call out.", "I will knock.",
	"The gate on the left is open.", "Thank you, I see it on the map.",
	"Do you need a signature?", "No, a name is enough.",
	"There is a dog, he only barks.", "Dogs like me.",
	"Which side do you come from?", "From Queen Street, I just turned in.",
	"I put the light on.", "I see it, I am parking.",
	"It is the second floor.", "On my way up.",
}

// letTalk lets recipients chat.
func (s *stage) letTalk(ctx context.Context) error {
	admin := s.admin()
	err := admin.call(ctx, http.MethodPut, admin.base+"/api/v1/order-chat/settings", map[string]any{"allow_recipient": true,
		"quick_replies": []any{map[string]any{"id": "looking", "text": "We are looking into it.", "audience": "all"}, map[string]any{"id": "call", "text": "Please call the depot.", "audience": "staff_driver"}}}, nil)
	if err != nil {
		return fmt.Errorf("let recipients chat: %w", err)
	}
	return nil
}

// onTheWay is a driver who sets off with an order, and the recipient who asks. They
// go on talking while the day does.
func (s script) onTheWay(ctx context.Context) error {
	made, err := s.tool(ctx, "create_order", someOrder())
	if err != nil {
		return err
	}
	number, _ := made["tracking_number"].(string)
	id, _ := made["order_id"].(float64)
	x := &talk{order: int64(id)}
	driver := s.as(s.box.Driver.Token)
	var me struct {
		User struct {
			ID int64 `json:"id"`
		} `json:"user"`
	}
	if err := driver.call(ctx, http.MethodGet, driver.base+"/api/v1/user/me", nil, &me); err != nil {
		return err
	}
	admin := s.admin()
	if err := admin.call(ctx, http.MethodPost, fmt.Sprintf("%s/api/v1/orders/%d/driver", admin.base, x.order), map[string]any{"driver_id": me.User.ID}, nil); err != nil {
		return fmt.Errorf("give the order to the driver: %w", err)
	}
	if err := driver.call(ctx, http.MethodPost, fmt.Sprintf("%s/api/v1/driver/orders/%d/start-delivery", driver.base, x.order), map[string]any{}, nil); err != nil {
		return fmt.Errorf("set off: %w", err)
	}
	var tracked struct {
		Chat struct {
			Token string `json:"token"`
		} `json:"chat"`
	}
	if err := admin.call(ctx, http.MethodGet, s.api.base+"/api/v1/tracking/"+number, nil, &tracked); err != nil {
		return err
	}
	var shown struct {
		Order struct {
			Link string `json:"recipient_link"`
		} `json:"order"`
	}
	if err := admin.call(ctx, http.MethodGet, fmt.Sprintf("%s/api/v1/orders/%d", admin.base, x.order), nil, &shown); err != nil {
		return err
	}
	s.logStory("driver", "is on the way with %s; talk along at http://%s/console/chats/%d or, as the recipient, %s#chat", number, s.http, x.order, shown.Order.Link)
	command, err := s.listenTo(ctx, admin, x.order)
	if err != nil {
		return err
	}
	s.logStory("driver", "listen in a second terminal: %s", command)
	s.goOn(ctx, x, driver, s.as(tracked.Chat.Token))
	return s.awaits(ctx, "a few messages", 30*time.Second, func() bool { return x.count() >= 2 })
}

// listenTo is a command that prints what is said about an order, as it is said.
func (s *stage) listenTo(ctx context.Context, admin *api, order int64) (string, error) {
	var out struct {
		MQTT struct {
			ClientID string   `json:"client_id"`
			Username string   `json:"username"`
			Password string   `json:"password"`
			Topics   []string `json:"topics"`
		} `json:"mqtt"`
	}
	if err := admin.call(ctx, http.MethodPost, admin.base+"/api/v1/order-chat/token", map[string]any{"order_ids": []int64{order}}, &out); err != nil {
		return "", fmt.Errorf("get credentials for the chat: %w", err)
	}
	host, port, err := net.SplitHostPort(s.cloud.cfg.Broker)
	if err != nil {
		return "", fmt.Errorf("read the broker's address: %w", err)
	}
	m := out.MQTT
	command := fmt.Sprintf("mosquitto_sub -h %s -p %s -q 1 -i %s -u %s -P %s", host, port, m.ClientID, m.Username, m.Password)
	for _, t := range m.Topics {
		if strings.Contains(t, "/order-chat/") {
			command += " -t " + t
		}
	}
	return command, nil
}

// goOn has driver and recipient talk until ctx ends, the talk is stopped or all is
// said. A message that does not arrive is sent again under its id.
func (s script) goOn(ctx context.Context, x *talk, driver, recipient *api) {
	ctx, x.stop = context.WithCancel(ctx)
	s.talks = append(s.talks, x)
	x.done.Go(func() {
		for i, line := range lines {
			who, name := recipient, "recipient"
			if i%2 == 1 {
				who, name = driver, "driver"
			}
			for {
				err := who.call(context.WithoutCancel(ctx), http.MethodPost, fmt.Sprintf("%s/api/v1/order-chat/orders/%d/messages", s.api.base, x.order), map[string]any{"text": line, "client_message_id": fmt.Sprintf("demo-%d", i)}, nil)
				if err == nil {
					break
				}
				if ctx.Err() != nil {
					return
				}
				sleep(ctx, time.Second)
			}
			x.mu.Lock()
			x.said++
			x.mu.Unlock()
			s.logStory(name, "“%s”", line)
			if sleep(ctx, beat); ctx.Err() != nil {
				return
			}
		}
	})
}

func (x *talk) count() int { x.mu.Lock(); defer x.mu.Unlock(); return x.said }

// sleep waits, but not longer than ctx.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// hush ends what people still say, and counts what they said and what of it the
// cloud has.
func (s reckoning) hush(ctx context.Context) (said, stored int, err error) {
	admin := s.admin()
	for _, x := range s.talks {
		x.stop()
		x.done.Wait()
		var out struct {
			Messages []struct {
				Text string `json:"text"`
			} `json:"messages"`
		}
		if err := admin.call(ctx, http.MethodGet, fmt.Sprintf("%s/api/v1/order-chat/orders/%d/messages?limit=100", admin.base, x.order), nil, &out); err != nil {
			return 0, 0, fmt.Errorf("read the chat: %w", err)
		}
		said += x.count()
		stored += len(out.Messages)
	}
	return said, stored, nil
}
