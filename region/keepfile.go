// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/atoll-dev/atoll/internal/atomicfile"
	"github.com/atoll-dev/atoll/internal/logging"
)

const (
	keptFormat  = "atoll.dev/peers"
	keptVersion = 1
	saveRetry   = time.Minute
)

var errLaterFile = errors.New("it was written by a later version of this library")

// peersFile is the content of the file. Sum is the SHA-256 of the bytes of Peers.
type peersFile struct {
	Format  string          `json:"format"`
	Version int             `json:"version"`
	At      time.Time       `json:"at"`
	Sum     string          `json:"sha256"`
	Peers   json.RawMessage `json:"peers"`
}

type filePeer struct {
	Name       PeerName            `json:"name"`
	Regions    []string            `json:"regions,omitempty"`
	Labels     map[string]string   `json:"labels,omitempty"`
	UID        types.UID           `json:"uid,omitempty"`
	Kubeconfig *clientcmdv1.Config `json:"kubeconfig,omitempty"`
	Withheld   string              `json:"withheld,omitempty"` // why the source withholds the credentials
}

// saving writes the latest Snapshot after each change, until ctx ends.
func (k *Kept) saving(ctx context.Context) {
	var retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			select {
			case <-k.changed: // a change that is not saved yet
				_ = k.save(ctx)
			default:
			}
			return
		case <-k.changed:
		case <-retry:
		}
		retry = nil
		if err := k.save(ctx); err != nil {
			retry = time.After(saveRetry)
		}
	}
}

func (k *Kept) save(ctx context.Context) error {
	k.mu.Lock()
	latest := k.latest
	k.mu.Unlock()
	data, err := encodePeers(latest, k.opts.Trust, time.Now())
	if err == nil {
		err = atomicfile.Replace(k.path, data)
	}
	if err != nil {
		logging.From(ctx).Error(err, "The peers cannot be kept: a restart while the source cannot be read will have older ones", "path", k.path)
	}
	return err
}

func encodePeers(s *Snapshot, trust Trust, at time.Time) ([]byte, error) {
	peers := []filePeer{}
	for p := range s.Peers() {
		f := filePeer{Name: p.Name, Labels: p.Labels, UID: p.UID}
		for _, key := range p.Regions {
			f.Regions = append(f.Regions, key.String())
		}
		if p.Credentials.withheld {
			f.Withheld = p.Credentials.err.Error()
		} else {
			f.Kubeconfig = kubeconfigOf(p.Credentials, trust)
		}
		peers = append(peers, f)
	}
	raw, err := json.Marshal(peers)
	if err != nil {
		return nil, err
	}
	return json.Marshal(peersFile{Format: keptFormat, Version: keptVersion, At: at.UTC(), Sum: sumOf(raw), Peers: raw})
}

func decodePeers(data []byte, trust Trust) (*Snapshot, time.Time, error) {
	var file peersFile
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, time.Time{}, err
	}
	switch {
	case file.Format != keptFormat:
		return nil, time.Time{}, fmt.Errorf("its format is %q, not %q", file.Format, keptFormat)
	case file.Version > keptVersion:
		return nil, time.Time{}, fmt.Errorf("%w (%d)", errLaterFile, file.Version)
	case file.Version < 1:
		return nil, time.Time{}, fmt.Errorf("its version is %d", file.Version)
	case file.Sum != sumOf(file.Peers):
		return nil, time.Time{}, errors.New("its checksum is wrong")
	}
	var listed []filePeer
	if err := json.Unmarshal(file.Peers, &listed); err != nil {
		return nil, time.Time{}, err
	}
	peers := make([]Peer, len(listed))
	for i, f := range listed {
		p := Peer{Name: f.Name, Labels: f.Labels, UID: f.UID, Credentials: f.credentials(trust)}
		for _, text := range f.Regions {
			key, err := ParseKey(text)
			if err != nil {
				return nil, time.Time{}, err
			}
			p.Regions = append(p.Regions, key)
		}
		peers[i] = p
	}
	s, err := NewSnapshot(peers...)
	return s, file.At, err
}

func (f filePeer) credentials(trust Trust) Credentials {
	switch {
	case f.Withheld != "":
		return Withheld(errors.New(f.Withheld))
	case f.Kubeconfig == nil:
		return Credentials{err: fmt.Errorf("the credentials of peer %s could not be kept; they come back with the source", f.Name)}
	}
	data, err := json.Marshal(f.Kubeconfig)
	var creds Credentials
	if err == nil {
		creds, err = ParseKubeconfig(data, trust)
	}
	if err != nil {
		return Credentials{err: fmt.Errorf("kept kubeconfig of peer %s: %w", f.Name, err)}
	}
	return creds
}

// kubeconfigOf returns the kubeconfig that ParseKubeconfig reads as c, or nil if no kubeconfig expresses c.
func kubeconfigOf(c Credentials, trust Trust) *clientcmdv1.Config {
	if c.check() != nil {
		return nil
	}
	config := kubeconfigFor(c.config)
	data, err := json.Marshal(config)
	if err != nil {
		return nil
	}
	if back, err := ParseKubeconfig(data, trust); err != nil || back.fingerprint != c.fingerprint {
		return nil
	}
	return config
}

// kubeconfigFor returns a kubeconfig with the fields of c that a kubeconfig can have.
func kubeconfigFor(c *rest.Config) *clientcmdv1.Config {
	const name = "kept"
	var extensions []clientcmdv1.NamedExtension
	user := clientcmdv1.AuthInfo{Token: c.BearerToken, ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}
	if e := c.ExecProvider; e != nil {
		user.Exec = &clientcmdv1.ExecConfig{
			Command: e.Command, Args: e.Args, APIVersion: e.APIVersion, ProvideClusterInfo: e.ProvideClusterInfo,
			InteractiveMode: clientcmdv1.ExecInteractiveMode(e.InteractiveMode),
		}
		for _, v := range e.Env {
			user.Exec.Env = append(user.Exec.Env, clientcmdv1.ExecEnvVar{Name: v.Name, Value: v.Value})
		}
		if info, ok := e.Config.(*runtime.Unknown); ok {
			extensions = []clientcmdv1.NamedExtension{{Name: pluginConfig, Extension: runtime.RawExtension{Raw: info.Raw}}}
		}
	}
	return &clientcmdv1.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: name,
		Clusters: []clientcmdv1.NamedCluster{{Name: name, Cluster: clientcmdv1.Cluster{
			Server: c.Host + c.APIPath, CertificateAuthorityData: c.CAData, TLSServerName: c.ServerName,
			InsecureSkipTLSVerify: c.Insecure, DisableCompression: c.DisableCompression, Extensions: extensions,
		}}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: name, AuthInfo: user}},
		Contexts:  []clientcmdv1.NamedContext{{Name: name, Context: clientcmdv1.Context{Cluster: name, AuthInfo: name}}},
	}
}

// withKept returns s with the credentials of kept for each peer whose credentials the source could not read, if both
// name the same cluster.
func withKept(s, kept *Snapshot) *Snapshot {
	if kept == nil {
		return s
	}
	peers, changed := make([]Peer, 0, s.Len()), false
	for p := range s.Peers() {
		peer := *p
		before, ok := kept.Peer(p.Name)
		if ok && p.Credentials.err != nil && !p.Credentials.withheld && p.UID != "" && p.UID == before.UID && before.Credentials.check() == nil {
			peer.Credentials, changed = before.Credentials, true
		}
		peers = append(peers, peer)
	}
	if !changed {
		return s
	}
	merged, err := NewSnapshot(peers...)
	if err != nil {
		return s // cannot happen: names and regions are those of s
	}
	return merged
}

func sumOf(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}
