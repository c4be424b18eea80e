// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// FromFile makes a Source of one YAML or JSON file that lists peers, their regions and kubeconfigs:
//
//	peers:
//	- name: eu-west
//	  kubeconfig: eu-west.kubeconfig # a path, relative to this file; or the kubeconfig itself, as text or as YAML
//	  regions: [eu-west-1.loodse]
//	  labels: {continent: europe}
//
// The file and the kubeconfigs that it names are read every second and whenever a peer rejects its credentials. Unknown
// fields are errors. A file that cannot be used, or has no list, changes nothing and is logged; "peers: []" removes all
// peers. A kubeconfig that cannot be used is logged, and its peer keeps its last good credentials; if there are none,
// Conn returns the error. If the first read of the file fails, Run fails. An error about a field is a *FieldError
// ("peers[0].regions[1]").
func FromFile(path string, trust Trust) (Source, error) { return newFiles(path, trust, readFile) }

type peerList struct {
	Peers []peerEntry `json:"peers"`
}

type peerEntry struct {
	Name       PeerName          `json:"name"`
	Kubeconfig json.RawMessage   `json:"kubeconfig"`
	Regions    []string          `json:"regions"`
	Labels     map[string]string `json:"labels"`
}

func readFile(f *files) ([]Peer, error) {
	data, err := readBounded(f.path)
	if err != nil {
		return nil, fmt.Errorf("list of peers: %w", err)
	}
	if len(data) > maxKubeconfig {
		return nil, fmt.Errorf("list of peers: %s has more than %d bytes", f.path, maxKubeconfig)
	}
	var list peerList
	if err := yaml.UnmarshalStrict(data, &list); err != nil {
		return nil, fmt.Errorf("list of peers: %s: %w", f.path,
			&FieldError{Reason: "cannot be read", Accept: "peers with name, kubeconfig, regions and labels", Err: withoutValues(err)})
	}
	if list.Peers == nil {
		// While the file is being written it can be empty for a moment.
		return nil, fmt.Errorf("list of peers: %s: %w", f.path,
			&FieldError{Field: "peers", Reason: "is missing", Accept: "a list of peers, [] if there are none"})
	}
	peers := make([]Peer, 0, len(list.Peers))
	present := make(map[PeerName]bool)
	for i, entry := range list.Peers {
		p, err := f.peer(fmt.Sprintf("peers[%d]", i), entry)
		if err != nil {
			return nil, fmt.Errorf("list of peers: %s: %w", f.path, err)
		}
		peers = append(peers, p)
		present[p.Name] = true
	}
	maps.DeleteFunc(f.good, func(name PeerName, _ Credentials) bool { return !present[name] })
	return peers, nil
}

func (f *files) peer(at string, entry peerEntry) (Peer, error) {
	if err := entry.Name.Validate(); err != nil {
		return Peer{}, &FieldError{Field: at + ".name", Reason: "is not a name", Accept: "a DNS-1123 subdomain, such as eu-west", Err: err}
	}
	p := Peer{Name: entry.Name, Labels: entry.Labels}
	for j, s := range entry.Regions {
		k, err := ParseKey(s)
		if err != nil {
			return Peer{}, &FieldError{Field: fmt.Sprintf("%s.regions[%d]", at, j), Reason: "is not a region",
				Accept: "NAME.PROVIDER, such as eu-west-1.loodse", Err: err}
		}
		p.Regions = append(p.Regions, k)
	}
	file, inline, err := f.kubeconfig(at+".kubeconfig", entry.Kubeconfig)
	if err != nil {
		return Peer{}, err
	}
	if inline == nil {
		inline, err = readBounded(file)
	}
	p.Credentials = f.credentials(p.Name, file, inline, err)
	return p, nil
}

// kubeconfig returns the path in raw, or the kubeconfig that raw itself holds.
func (f *files) kubeconfig(at string, raw json.RawMessage) (file string, inline []byte, err error) {
	raw = bytes.TrimSpace(raw)
	if bytes.HasPrefix(raw, []byte("{")) {
		return f.path + "#" + at, raw, nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil || text == "" {
		return "", nil, &FieldError{Field: at, Reason: "is missing or neither text nor an object", Accept: "a path, or a kubeconfig"}
	}
	if strings.Contains(text, "\n") {
		return f.path + "#" + at, []byte(text), nil
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(filepath.Dir(f.path), text)
	}
	return text, nil, nil
}
