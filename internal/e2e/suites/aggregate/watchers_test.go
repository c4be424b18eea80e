// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

const (
	watchers = 100
	changes  = 200 // in each region
)

// BenchmarkWatchers begins 100 watches with initial events over 3 x 10,000 ConfigMaps of 1.5 KB of real API servers, as
// informers do, and then changes 200 objects in each region. The baseline is one watch of each region without a gateway,
// before each run. "start" and "changes" are the processor time of the API servers divided by that of the baseline; the
// time that idle API servers take does not count. "peak-MiB" is the peak memory of the gateway, which runs with GOGC=20.
// The sub-benchmarks have one identity, and 100.
func BenchmarkWatchers(b *testing.B) {
	planes, dir := filled(b)
	bare := newAlone(b, dir, true)
	var direct []string
	for _, p := range planes {
		direct = append(direct, bare.address+"/"+p.Name())
	}
	began, before := time.Now(), used(b, planes)
	time.Sleep(20 * time.Second)
	idle := (used(b, planes) - before) / time.Since(began).Seconds()
	b.Logf("idle API servers take %.3f processors", idle)
	for name, identities := range map[string]int{"one-identity": 1, "100-identities": watchers} {
		b.Run(name, func(b *testing.B) {
			var starts, changeds, cpus, peaks []float64
			for b.Loop() {
				baseStart, baseChanges := watched(b, planes, idle, direct, 1, objects, changes)
				gateway := newAlone(b, dir, false, "GOGC=20")
				addresses := make([]string, watchers)
				for i := range addresses {
					addresses[i] = gateway.address + "/regions/*"
				}
				start, changed := watched(b, planes, idle, addresses, identities, 3*objects, 3*changes)
				cpu, peak := gateway.used(b)
				b.Logf("start: %.2f s, baseline %.2f s; changes: %.2f s, baseline %.2f s", start, baseStart, changed, baseChanges)
				starts, changeds = append(starts, start/baseStart), append(changeds, changed/baseChanges)
				cpus, peaks = append(cpus, cpu.Seconds()), append(peaks, float64(peak>>20))
			}
			for name, values := range map[string][]float64{"start": starts, "changes": changeds, "gateway-cpu-s": cpus, "peak-MiB": peaks} {
				b.ReportMetric(median(values), name)
			}
		})
	}
}

// watched begins a watch at each address, waits until each has received the initial events, changes objects, and waits
// until each watch has received the changes. It returns the processor time of the API servers until the initial events
// had arrived, and after that.
func watched(b *testing.B, planes []*plane.Plane, idle float64, addresses []string, identities, initial, later int) (start, changed float64) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	client := httptest.NewTLSServer(http.NotFoundHandler()).Client() // it trusts the certificate of httptest
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	before, since := used(b, planes), time.Now()
	taken := func() float64 {
		now := used(b, planes)
		busy := now - before - idle*time.Since(since).Seconds()
		before, since = now, time.Now()
		return busy
	}
	began, complete := make(chan struct{}), make(chan error)
	for i, address := range addresses {
		running.Go(func() {
			err := follow(ctx, client, address, strconv.Itoa(i%identities), initial, func() { began <- struct{}{} }, later)
			if ctx.Err() == nil {
				complete <- err
			}
		})
	}
	for range addresses {
		select {
		case <-began:
		case err := <-complete:
			require.NoError(b, err)
			b.Fatal("a watch ended before its time")
		case <-time.After(5 * time.Minute):
			b.Fatal("the events do not arrive")
		}
	}
	start = taken()
	for _, p := range planes {
		settings := planetest.Dynamic(b, p.Config()).Resource(configMaps).Namespace("cost")
		for i := range changes {
			_, err := settings.Patch(ctx, fmt.Sprintf("settings-%d", i), types.MergePatchType, fmt.Appendf(nil, `{"data":{"at":"%d"}}`, time.Now().UnixNano()), metav1.PatchOptions{})
			require.NoError(b, err)
		}
	}
	for range addresses {
		require.NoError(b, <-complete)
	}
	return start, taken()
}

// follow watches with initial events. It calls began once it has received them all, and returns after the later events.
func follow(ctx context.Context, client *http.Client, address, reader string, initial int, began func(), later int) error {
	const query = "/api/v1/namespaces/cost/configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+query, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set(readerHeader, reader)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewReaderSize(resp.Body, 64<<10)
	synced := false
	for events := 0; ; {
		line, err := lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("after %d events: %w", events, err)
		}
		switch {
		case bytes.HasPrefix(line, []byte(`{"type":"BOOKMARK"`)) && bytes.Contains(line, []byte(metav1.InitialEventsAnnotationKey)):
			if events < initial {
				return fmt.Errorf("%d of %d initial events", events, initial)
			}
			synced, events = true, 0
			began()
		case bytes.HasPrefix(line, []byte(`{"type":"ERROR"`)), resp.StatusCode != http.StatusOK:
			rest, _ := io.ReadAll(io.LimitReader(lines, 1<<10))
			return fmt.Errorf("%s: %s%s", resp.Status, line, rest)
		case bytes.HasPrefix(line, []byte(`{"type":"`)) && !bytes.HasPrefix(line, []byte(`{"type":"BOOKMARK"`)):
			events++
		}
		if synced && events == later {
			return nil
		}
	}
}

var cpuSeconds = regexp.MustCompile(`(?m)^process_cpu_seconds_total (\S+)$`)

// used returns the processor time of the API servers, in seconds.
func used(b *testing.B, planes []*plane.Plane) (seconds float64) {
	b.Helper()
	for _, p := range planes {
		client, err := rest.HTTPClientFor(p.Config())
		require.NoError(b, err)
		req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, p.Server()+"/metrics", http.NoBody)
		require.NoError(b, err)
		resp, err := client.Do(req)
		require.NoError(b, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(b, errors.Join(err, resp.Body.Close()))
		match := cpuSeconds.FindSubmatch(text)
		require.NotNil(b, match)
		n, err := strconv.ParseFloat(string(match[1]), 64)
		require.NoError(b, err)
		seconds += n
	}
	return seconds
}
