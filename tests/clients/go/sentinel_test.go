// go-redis, as Debian packages it, finds the writer by its Sentinels, and follows it: while it hands over, and when it is
// killed.
package sentinel

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	redis "gopkg.in/redis.v5"
)

const (
	name     = "holdfast"
	writes   = 200
	patience = 20 * time.Second
)

// A server of the log in a directory.
type member struct {
	port, sentinelPort int
	process            *exec.Cmd
	client             *redis.Client
}

func freePort(t *testing.T) int {
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer probe.Close()
	return probe.Addr().(*net.TCPAddr).Port
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func start(t *testing.T, arguments ...string) *member {
	m := &member{port: freePort(t), sentinelPort: freePort(t)}
	ports := []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(m.port), "--sentinel-port", strconv.Itoa(m.sentinelPort)}
	m.process = exec.Command(os.Getenv("HOLDFAST_BIN"), append(ports, arguments...)...)
	if err := m.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.kill)
	m.client = redis.NewClient(&redis.Options{Addr: m.address()})
	eventually(t, "the server answers", func() bool { return m.client.Ping().Err() == nil })
	return m
}

func (m *member) address() string { return fmt.Sprintf("127.0.0.1:%d", m.port) }

func (m *member) sentinel() string { return fmt.Sprintf("127.0.0.1:%d", m.sentinelPort) }

func (m *member) kill() {
	m.process.Process.Kill()
	m.process.Wait()
}

// The role of a server, and how many followers it has.
func (m *member) role() (string, int) {
	command := redis.NewSliceCmd("ROLE")
	m.client.Process(command)
	parts, err := command.Result()
	if err != nil {
		return "", 0
	}
	followers, _ := parts[2].([]interface{})
	return parts[0].(string), len(followers)
}

func awaitFollower(t *testing.T, writer *member) {
	eventually(t, "the writer has a follower", func() bool {
		role, followers := writer.role()
		return role == "master" && followers == 1
	})
}

func handOver(t *testing.T, writer, follower *member) (*member, *member) {
	command := redis.NewStatusCmd("FAILOVER")
	writer.client.Process(command)
	if command.Err() != nil {
		t.Fatal(command.Err())
	}
	eventually(t, "the follower writes", func() bool {
		before, _ := writer.role()
		now, _ := follower.role()
		return before == "slave" && now == "master"
	})
	awaitFollower(t, follower)
	return follower, writer
}

func TestWritesGoOn(t *testing.T) {
	directory := t.TempDir()
	writer := start(t, "--dir", directory)
	follower := start(t, "--follow", "file:"+directory)
	awaitFollower(t, writer)
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:    name,
		SentinelAddrs: []string{writer.sentinel(), follower.sentinel()},
	})
	defer client.Close()
	var acknowledged, hasToEnd int64
	var writing sync.WaitGroup
	writing.Add(1)
	go func() {
		defer writing.Done()
		for atomic.LoadInt64(&hasToEnd) == 0 {
			number := atomic.LoadInt64(&acknowledged)
			if client.Set(fmt.Sprintf("key:%d", number), number, 0).Err() == nil {
				atomic.AddInt64(&acknowledged, 1)
			} else {
				time.Sleep(10 * time.Millisecond)
			}
		}
	}()
	defer writing.Wait()
	defer atomic.StoreInt64(&hasToEnd, 1)
	more := func() {
		t.Helper()
		wanted := atomic.LoadInt64(&acknowledged) + writes
		eventually(t, "the client goes on", func() bool { return atomic.LoadInt64(&acknowledged) >= wanted })
	}
	more()
	writer, follower = handOver(t, writer, follower)
	more()
	writer, follower = handOver(t, writer, follower)
	more()
	writer.kill()
	promoted := redis.NewStatusCmd("REPLICAOF", "NO", "ONE")
	follower.client.Process(promoted)
	if promoted.Err() != nil {
		t.Fatal(promoted.Err())
	}
	more()
	atomic.StoreInt64(&hasToEnd, 1)
	writing.Wait()
	for number := int64(0); number < acknowledged; number++ {
		value, err := follower.client.Get(fmt.Sprintf("key:%d", number)).Int64()
		if err != nil || value != number {
			t.Fatalf("key:%d is lost: %d, %v", number, value, err)
		}
	}
}
