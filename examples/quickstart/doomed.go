// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
)

// doomed is the environment variable that makes this program the coordinator to kill.
const doomed = "ATOLL_QUICKSTART_DOOMED"

// errand is the job of the doomed process, passed on its standard input.
type errand struct {
	Peers         kubeconfigs
	Log           string
	Account, Name string
	Target        region.PeerName
	When          moment
}

// arrived is the line that the doomed process prints when it is to be killed.
const arrived = "arrived"

// killAt runs this program as another process with the errand, and kills that process at the moment
// that the errand names. It returns the process ID.
func (e errand) killAt(ctx context.Context) (pid int, err error) {
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), doomed+"=1")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	_ = json.NewEncoder(stdin).Encode(e) // on an error the process does not print arrived
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	_ = cmd.Process.Kill()
	err = cmd.Wait()
	if strings.TrimSpace(line) != arrived {
		return 0, fmt.Errorf("the process that was to be killed ended before: %w: %s", err, strings.TrimSpace(complaint.String()))
	}
	return cmd.Process.Pid, nil
}

// runDoomed runs the errand on stdin up to the moment that the errand names, prints arrived, and
// waits to be killed. If the moment does not come, it returns an exit code.
func runDoomed(stdin io.Reader, stdout, stderr io.Writer) int {
	var e errand
	in := json.NewDecoder(stdin)
	err := in.Decode(&e)
	if err == nil {
		err = e.carryOut(func() {
			_, _ = fmt.Fprintln(stdout, arrived)
			// When the parent process ends, stdin is closed, and this process ends too.
			_, _ = io.Copy(io.Discard, stdin)
			os.Exit(1)
		})
	}
	_, _ = fmt.Fprintln(stderr, "not killed:", err)
	return 1
}

// carryOut adds the ServiceCluster. It calls arrive at the moment that the errand names.
func (e errand) carryOut(arrive func()) error {
	ring, err := connect(e.Peers)
	if err != nil {
		return err
	}
	coordinator, _, err := newCoordinator(ring, e.Log, fanout.Options{
		Identity: "doomed",
		Observer: &fanout.Observer{Step: func(_ context.Context, step fanout.StepEvent) {
			if e.When.reached(step, e.Target) {
				arrive()
			}
		}},
	})
	if err != nil {
		return err
	}
	_, err = coordinator.Add(context.Background(), newServiceCluster(e.Account, e.Name), fanout.AddOptions{Target: e.Target})
	return err
}
