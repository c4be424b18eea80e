// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const (
	// waiting is the number of events that may wait to be written.
	waiting = 4096
	// rotation is how often the file's path is looked at.
	rotation = time.Second
)

// Log writes events. A nil *Log drops them. It is safe for concurrent use.
type Log struct {
	path   string
	out    io.Writer
	file   *os.File // nil: out is not a file of path
	events chan *auditv1.Event
	ended  chan struct{}
	failed atomic.Int64
}

// Open makes the Log of a path: "" for none, which is nil, "-" for stdout, or a file that events are appended to. Start
// writes.
func Open(path string, stdout io.Writer) (*Log, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // a nil Log is valid
	}
	l := &Log{path: path, out: stdout, events: make(chan *auditv1.Event, waiting), ended: make(chan struct{})}
	if path == "-" {
		return l, nil
	}
	return l, l.open()
}

func (l *Log) open() error {
	file, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file, l.out = file, file
	return nil
}

// Add adds an event. It waits for a place if too many events wait to be written. Events after the end of Start are
// dropped and counted.
func (l *Log) Add(e *auditv1.Event) {
	if l == nil {
		return
	}
	select {
	case <-l.ended:
		l.failed.Add(1)
		return
	default:
	}
	select {
	case l.events <- e:
	case <-l.ended:
		l.failed.Add(1)
	}
}

// Failed is the number of events that could not be written.
func (l *Log) Failed() int64 {
	if l == nil {
		return 0
	}
	return l.failed.Load()
}

// Start writes events until ctx ends, and then those that still wait. Call it once.
func (l *Log) Start(ctx context.Context) error {
	if l == nil {
		return nil
	}
	defer close(l.ended)
	log := logr.FromContextOrDiscard(ctx).WithName("audit")
	encoder := writer{log: l, logger: log}
	tick := time.NewTicker(rotation)
	defer tick.Stop()
	for {
		select {
		case e := <-l.events:
			encoder.write(e)
		case <-tick.C:
			l.rotate(log)
		case <-ctx.Done():
			for {
				select {
				case e := <-l.events:
					encoder.write(e)
				default:
					return l.Close()
				}
			}
		}
	}
}

// Close closes the file of a Log that is not started. Start closes it otherwise.
func (l *Log) Close() error {
	if l == nil || l.file == nil {
		return nil
	}
	return errors.Join(l.file.Sync(), l.file.Close())
}

// rotate opens the file again if its path leads to another file or to none.
func (l *Log) rotate(log logr.Logger) {
	if l.file == nil {
		return
	}
	at, err := os.Stat(l.path)
	if err == nil {
		if own, err := l.file.Stat(); err == nil && os.SameFile(at, own) {
			return
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return
	}
	if err := l.open(); err != nil {
		log.Error(err, "The audit log was renamed and cannot be opened again; events go on into the renamed file", "path", l.path)
	}
}

// writer writes events, and logs the first of a row of failures.
type writer struct {
	log     *Log
	logger  logr.Logger
	failing bool
}

func (w *writer) write(e *auditv1.Event) {
	line, err := json.Marshal(e)
	if err == nil {
		_, err = w.log.out.Write(append(line, '\n'))
	}
	if err != nil {
		w.log.failed.Add(1)
		if !w.failing {
			w.logger.Error(fmt.Errorf("audit: %w", err), "Audit events cannot be written, and are lost", "path", w.log.path)
		}
	} else if w.failing {
		w.logger.Info("Audit events are written again", "path", w.log.path, "lost", w.log.failed.Load())
	}
	w.failing = err != nil
}
