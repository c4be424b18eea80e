// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal"
)

var update = flag.Bool("update", false, "write the expected output of scripts anew")

// TestScripts runs the scripts in testdata against API servers in memory. A script
// consists of command lines as a user types them. These commands exist only in scripts:
//
//	ring NAME...           starts a server with the types of Atoll for each name, and
//	                       lists the servers in peers.yaml
//	bare NAME...           does the same as ring, without the types
//	central NAME           starts a central plane, with the rights that "atollctl rbac
//	                       --central" prints
//	upstream NAME          starts an upstream with the types of placement, which grants all that
//	                       "placement preview" lists
//	used NAME VERB...      fails if the server grants a right that no command has used,
//	                       except rights with these verbs
//	atollctl ARG...        runs atollctl, which must exit 0
//	plugin ARG...          runs atollctl as kubectl-atoll, which must exit 0
//	exits CODE ARG...      runs atollctl, which must exit with CODE
//	pipe FILE ARG...       runs atollctl with the file as its standard input
//	cut NAME, join NAME    makes a server unreachable, and reachable again
//	backup NAME, restore NAME  takes a backup of a server, and restores it
//	lock FILE              keeps a log open until the end of the script
//	begin FILE ID...       begins an entry with each ID in a log
//	damage FILE ID         makes an entry of a log unreadable
//	truncate FILE          cuts a file to a sixteenth of its length
//	heal NAME              ends the faults of a server
//	fault NAME VERB RESOURCE CODE|drop-request|drop-reply|hang [times]
//	                       lets the server's requests with this verb and resource fail
//	deny NAME VERB RESOURCE  removes a right from the rights that the server grants
//	grant NAME VERB RESOURCE  adds a right to the rights that the server grants
//	expires NAME token|certificate DURATION  gives the kubeconfig of a server other credentials,
//	                       which expire after the duration; it may be negative
//	get NAME PATH          prints the object at a path of the server's API
//	create NAME PATH FILE  creates the object in the file at a path, as a person may
//	patch NAME PATH FILE   merges the file into the object at a path
//	delete NAME PATH       deletes the object at a path
//
// The commands atollctl, exits and pipe add --config peers.yaml unless their arguments
// name peers, and --wal operations.db --create-wal unless their arguments name a log.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Values[ringKey{}] = &ring{servers: map[string]*server{}}
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"ring": func(ts *testscript.TestScript, _ bool, args []string) { start(ts, args, true) },
			"central": func(ts *testscript.TestScript, _ bool, args []string) {
				types, err := central()
				ts.Check(err)
				s := serve(ts.Defer, ts.Check, args[0], types, rights.CoordinateCentral())
				ringOf(ts).servers[args[0]] = s
				ts.Check(writeFile(ts.MkAbs(args[0]+".kubeconfig"), s.kubeconfig))
			},
			"upstream": func(ts *testscript.TestScript, _ bool, args []string) {
				types, err := upstreams()
				ts.Check(err)
				s := serve(ts.Defer, ts.Check, args[0], types, previewRights())
				ringOf(ts).servers[args[0]] = s
				ts.Check(writeFile(ts.MkAbs(args[0]+".kubeconfig"), s.kubeconfig))
			},
			"used": func(ts *testscript.TestScript, _ bool, args []string) {
				s := serverOf(ts, args[0])
				s.mu.Lock()
				defer s.mu.Unlock()
				for _, r := range s.allowed {
					if !s.used[r] && !slices.Contains(args[1:], r.verb) {
						ts.Fatalf("%s grants %s of %s, which nothing has used", args[0], r.verb, r.resource)
					}
				}
			},
			"bare":     func(ts *testscript.TestScript, _ bool, args []string) { start(ts, args, false) },
			"atollctl": func(ts *testscript.TestScript, _ bool, args []string) { runScript(ts, exitDone, "", args) },
			"plugin": func(ts *testscript.TestScript, _ bool, args []string) {
				s := &session{in: strings.NewReader(""), out: ts.Stdout(), errOut: ts.Stderr(), getenv: ts.Getenv, now: time.Now}
				if code := s.execute(context.Background(), append([]string{"/usr/bin/kubectl-atoll"}, args...)); code != exitDone {
					ts.Fatalf("exit code %d", code)
				}
			},
			"pipe": func(ts *testscript.TestScript, _ bool, args []string) {
				runScript(ts, exitDone, ts.ReadFile(args[0]), args[1:])
			},
			"exits": func(ts *testscript.TestScript, _ bool, args []string) {
				code, err := strconv.Atoi(args[0])
				ts.Check(err)
				runScript(ts, code, "", args[1:])
			},
			"cut":  func(ts *testscript.TestScript, _ bool, args []string) { serverOf(ts, args[0]).Partition(true) },
			"join": func(ts *testscript.TestScript, _ bool, args []string) { serverOf(ts, args[0]).Partition(false) },
			"backup": func(ts *testscript.TestScript, _ bool, args []string) {
				s := serverOf(ts, args[0])
				s.saved = s.Save()
			},
			"restore": func(ts *testscript.TestScript, _ bool, args []string) {
				s := serverOf(ts, args[0])
				ts.Check(s.Load(s.saved))
			},
			"heal":  func(ts *testscript.TestScript, _ bool, args []string) { serverOf(ts, args[0]).Reset() },
			"fault": fault,
			"truncate": func(ts *testscript.TestScript, _ bool, args []string) {
				path := ts.MkAbs(args[0])
				info, err := os.Stat(path)
				ts.Check(err)
				ts.Check(os.Truncate(path, info.Size()/16))
			},
			"lock": func(ts *testscript.TestScript, _ bool, args []string) {
				file, err := wal.Open(ts.MkAbs(args[0]), wal.Options{})
				ts.Check(err)
				ts.Defer(func() { _ = file.Close() })
			},
			"begin": func(ts *testscript.TestScript, _ bool, args []string) {
				file, err := wal.Open(ts.MkAbs(args[0]), wal.Options{})
				ts.Check(err)
				for _, id := range args[1:] {
					_, err = file.Begin(context.Background(), wal.Entry{ID: id, Key: id + "-key"})
					ts.Check(err)
				}
				ts.Check(file.Close())
			},
			"damage": func(ts *testscript.TestScript, _ bool, args []string) {
				image, err := os.ReadFile(ts.MkAbs(args[0]))
				ts.Check(err)
				whole, hurt := []byte(args[1]+"\x01"), []byte(args[1]+"\x02") // in the file, the version of a record follows the ID
				ts.Check(writeFile(ts.MkAbs(args[0]), bytes.ReplaceAll(image, whole, hurt)))
			},
			"deny": func(ts *testscript.TestScript, _ bool, args []string) {
				serverOf(ts, args[0]).deny(args[1], schema.ParseGroupResource(args[2]))
			},
			"grant": func(ts *testscript.TestScript, _ bool, args []string) {
				serverOf(ts, args[0]).grant(args[1], schema.ParseGroupResource(args[2]))
			},
			"expires": expires,
			"get":     get,
			"create": func(ts *testscript.TestScript, _ bool, args []string) {
				text, code := serverOf(ts, args[0]).send(http.MethodPost, args[1], ts.ReadFile(args[2]))
				if code != http.StatusCreated {
					ts.Fatalf("create %s in %s: %s", args[1], args[0], text)
				}
			},
			"patch": func(ts *testscript.TestScript, _ bool, args []string) {
				text, code := serverOf(ts, args[0]).send(http.MethodPatch, args[1], ts.ReadFile(args[2]))
				if code != http.StatusOK {
					ts.Fatalf("patch %s in %s: %s", args[1], args[0], text)
				}
			},
			"delete": func(ts *testscript.TestScript, _ bool, args []string) {
				text, code := serverOf(ts, args[0]).send(http.MethodDelete, args[1], "")
				if code != http.StatusOK {
					ts.Fatalf("delete %s in %s: %s", args[1], args[0], text)
				}
			},
		},
	})
}

// start starts a server for each name. It writes peers.yaml, in which the peer NAME has the region
// NAME-1.loodse.
func start(ts *testscript.TestScript, names []string, crds bool) {
	r := ringOf(ts)
	var list strings.Builder
	list.WriteString("peers:\n")
	for _, name := range names {
		s := newServer(ts.Defer, ts.Check, name, crds)
		r.servers[name] = s
		ts.Check(writeFile(ts.MkAbs(name+".kubeconfig"), s.kubeconfig))
		fmt.Fprintf(&list, "- name: %s\n  kubeconfig: %s.kubeconfig\n  regions: [%s-1.loodse]\n", name, name, name)
	}
	ts.Check(writeFile(ts.MkAbs("peers.yaml"), []byte(list.String())))
}

func runScript(ts *testscript.TestScript, want int, in string, args []string) {
	named := func(flags ...string) bool {
		return slices.ContainsFunc(args, func(arg string) bool {
			name, _, _ := strings.Cut(arg, "=")
			return slices.Contains(flags, name)
		})
	}
	for i, arg := range args {
		args[i] = absolute(ts, arg)
	}
	line := []string{"atollctl"}
	if !named("--config", "--kubeconfig", "--context") {
		line = append(line, "--config", ts.MkAbs("peers.yaml"))
	}
	if !named("--wal", "--log") {
		line = append(line, "--wal", ts.MkAbs("operations.db"), "--create-wal")
	}
	var out, errOut bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s := &session{in: strings.NewReader(in), out: &out, errOut: &errOut, getenv: ts.Getenv, now: time.Now, cleanup: time.Second, lease: 2 * time.Second}
	code := s.execute(ctx, append(line, args...))
	for name, s := range ringOf(ts).servers {
		for _, secret := range s.secrets {
			if bytes.Contains(out.Bytes(), secret) || bytes.Contains(errOut.Bytes(), secret) {
				ts.Fatalf("a secret of %s was printed", name)
			}
		}
	}
	_, err := ts.Stdout().Write(normal(ts, out.Bytes()))
	ts.Check(err)
	_, err = ts.Stderr().Write(normal(ts, errOut.Bytes()))
	ts.Check(err)
	if code != want {
		ts.Fatalf("atollctl %s: exit code %d, want %d", strings.Join(args, " "), code, want)
	}
}

// absolute returns arg with the name of a file in it, if it has one, replaced by the path in the
// directory of the script.
func absolute(ts *testscript.TestScript, arg string) string {
	flag, file, ok := strings.Cut(arg, "=")
	if !ok {
		flag, file = "", arg
	} else {
		flag += "="
	}
	if kube, path, ok := strings.Cut(file, ":"); ok && kube == "kube" {
		flag, file = flag+"kube:", path
	}
	switch filepath.Ext(file) {
	case ".yaml", ".db", ".kubeconfig":
		return flag + ts.MkAbs(file)
	}
	return arg
}

// changing lists patterns of text that differs between runs.
var changing = []struct {
	expr *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\b[0-9a-f]{11}-[0-9a-f]{20}\b`), "OPERATION"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "UID"},
	{regexp.MustCompile(`\b[0-9a-f]{20}\b`), "RING"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`(?m)\b\d+s$`), "AGE"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(ms|s)(  +)`), "TRIP$3"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "DIGEST"},
	{regexp.MustCompile(`("?resourceVersion"?): "\d+"`), `$1: "VERSION"`},
}

// normal replaces text that differs between runs. It also replaces the spaces between columns by
// one space.
func normal(ts *testscript.TestScript, text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte(ts.MkAbs(".")+"/"), nil)
	host, err := os.Hostname()
	ts.Check(err)
	text = bytes.ReplaceAll(text, fmt.Appendf(nil, "%s/%d", host, os.Getpid()), []byte("PROCESS"))
	for _, c := range changing {
		text = c.expr.ReplaceAll(text, []byte(c.with))
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if indent := len(line) - len(strings.TrimLeft(line, " ")); indent == 0 {
			lines[i] = strings.TrimRight(regexp.MustCompile(` {2,}`).ReplaceAllString(line, " "), " ")
		}
	}
	return []byte(strings.Join(lines, "\n"))
}

func fault(ts *testscript.TestScript, _ bool, args []string) {
	f := regiontest.Fault{Verb: args[1], Resource: schema.ParseGroupResource(args[2])}
	switch args[3] {
	case "drop-request":
		f.Do = regiontest.DropRequest()
	case "drop-reply":
		f.Do = regiontest.DropReply()
	case "hang":
		f.Do = regiontest.Hang()
	default:
		code, err := strconv.Atoi(args[3])
		ts.Check(err)
		f.Do = regiontest.Refuse(code)
	}
	if len(args) > 4 {
		times, err := strconv.Atoi(args[4])
		ts.Check(err)
		f.Times = times
	}
	serverOf(ts, args[0]).Inject(f)
}

// get prints an object of a peer.
func get(ts *testscript.TestScript, neg bool, args []string) {
	text, code := serverOf(ts, args[0]).send(http.MethodGet, args[1], "")
	if found := code == http.StatusOK; found == neg {
		ts.Fatalf("get %s in %s: status %d", args[1], args[0], code)
	}
	_, err := ts.Stdout().Write(text)
	ts.Check(err)
}

type ringKey struct{}

// ring holds the servers of one script.
type ring struct{ servers map[string]*server }

func ringOf(ts *testscript.TestScript) *ring {
	r, ok := ts.Value(ringKey{}).(*ring)
	if !ok {
		ts.Fatalf("the script has no ring")
	}
	return r
}

func serverOf(ts *testscript.TestScript, name string) *server {
	s, ok := ringOf(ts).servers[name]
	if !ok {
		ts.Fatalf("no server %q", name)
	}
	return s
}
