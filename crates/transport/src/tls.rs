//! TLS certificates: self-signed and pinned by hash, or configured.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, ring::default_provider, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError as TlsCertificateError, DigitallySignedStruct, SignatureScheme};
use sametick_wire::hex::from_hex;
use time::{Duration, OffsetDateTime};

/// The clients of a self-signed certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Our own clients, which pin its hash without a time limit: it stays the same for years.
    Native,
    /// Browsers, which pin only certificates that live for at most 14 days: it is renewed every week, also while
    /// running.
    Browsers,
}

impl Purpose {
    const fn life_days(self) -> u32 {
        match self {
            Purpose::Native => 20 * 365,
            Purpose::Browsers => 13,
        }
    }

    /// Half of its life, so that a recently published hash is still good.
    const fn renew_after(self) -> std::time::Duration {
        std::time::Duration::from_secs(self.life_days() as u64 * 86_400 / 2)
    }

    const fn file_name(self) -> &'static str {
        match self {
            Purpose::Native => "native",
            Purpose::Browsers => "browsers",
        }
    }
}

/// SHA-256 of a certificate, as browsers use it in `serverCertificateHashes`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CertHash(pub [u8; 32]);

impl CertHash {
    /// The hash of a certificate in DER.
    pub fn of(der: &[u8]) -> CertHash {
        let digest = ring::digest::digest(&ring::digest::SHA256, der);
        CertHash(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

impl fmt::Display for CertHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for CertHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CertHash({self})")
    }
}

/// Not 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a certificate hash has 64 hexadecimal digits")]
pub struct BadCertHash;

impl FromStr for CertHash {
    type Err = BadCertHash;

    fn from_str(text: &str) -> Result<CertHash, BadCertHash> {
        // As long as a schema hash, and parsed the same way.
        from_hex(text).map(CertHash).ok_or(BadCertHash)
    }
}

/// How a client authenticates the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The server must have the certificate with this hash.
    Pinned(CertHash),
    /// The server must have a certificate for its host name from a public authority.
    Public,
}

/// A certificate chain and its key. Clones share it: renewing it renews it for every listener.
#[derive(Clone, Debug)]
pub struct Certificate {
    current: Arc<RwLock<Arc<CertifiedKey>>>,
    origin: Origin,
}

/// The source of a certificate, which decides how it is renewed.
#[derive(Clone, Debug)]
enum Origin {
    Configured { chain: PathBuf, key: PathBuf },
    Kept { folder: PathBuf, purpose: Purpose, names: Vec<String> },
    Made,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The underlying error.
        error: io::Error,
    },
    /// A file has the wrong content.
    #[error("{} should be a PEM file with {what}: {error}", path.display())]
    Pem {
        /// Its path.
        path: PathBuf,
        /// The expected content.
        what: &'static str,
        /// The underlying error.
        error: rustls::pki_types::pem::Error,
    },
    /// A certificate cannot be created.
    #[error("a certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
    /// The certificate and the key do not work together.
    #[error("the certificate {} and the key {} cannot be used: {error}", chain.display(), key.display())]
    Unusable {
        /// The file of the certificate.
        chain: PathBuf,
        /// The file of its key.
        key: PathBuf,
        /// The underlying error.
        error: rustls::Error,
    },
    /// The certificate and the key do not work together.
    #[error("the certificate cannot be used: {0}")]
    Tls(#[from] rustls::Error),
}

impl Certificate {
    /// Creates a self-signed certificate for these names, without storing it.
    pub fn self_signed(names: &[String], purpose: Purpose) -> Result<Certificate, CertificateError> {
        let (chain, key) = make(names, purpose)?;
        Certificate::new(chain, &key, Origin::Made)
    }

    /// Reads a configured certificate.
    pub fn load(chain: &Path, key: &Path) -> Result<Certificate, CertificateError> {
        let (certs, secret) = read(chain, key)?;
        Certificate::new(certs, &secret, Origin::Configured { chain: chain.to_owned(), key: key.to_owned() })
    }

    /// Reads the certificate stored in a folder, so that its hash stays the same over restarts; creates it if there is
    /// none.
    pub fn kept_in(
        folder: &Path,
        purpose: Purpose,
        names: &[String],
    ) -> Result<Certificate, CertificateError> {
        let origin = Origin::Kept { folder: folder.to_owned(), purpose, names: names.to_vec() };
        let (chain, key) = keep(folder, purpose, names)?;
        Certificate::new(chain, &key, origin)
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        key: &PrivateKeyDer<'static>,
        origin: Origin,
    ) -> Result<Certificate, CertificateError> {
        let certified = CertifiedKey::from_der(chain, key.clone_key(), &default_provider())?;
        Ok(Certificate { current: Arc::new(RwLock::new(Arc::new(certified))), origin })
    }

    fn current(&self) -> Arc<CertifiedKey> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The hash that clients pin.
    pub fn hash(&self) -> CertHash {
        CertHash::of(&self.current().cert[0])
    }

    /// Reads a configured certificate again, renews a stored one if it is old. New connections use it; others keep
    /// theirs. Returns whether it has changed.
    pub fn renew(&self) -> Result<bool, CertificateError> {
        let (chain, key) = match &self.origin {
            Origin::Configured { chain, key } => read(chain, key)?,
            Origin::Kept { folder, purpose, names } => keep(folder, *purpose, names)?,
            Origin::Made => return Ok(false),
        };
        let before = self.hash();
        let certified = CertifiedKey::from_der(chain, key, &default_provider())?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(certified);
        Ok(self.hash() != before)
    }

    /// The settings of a server with this certificate.
    pub fn server_config(&self, alpn: &[&[u8]]) -> Result<rustls::ServerConfig, CertificateError> {
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(self.clone()));
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Ok(config)
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

type ChainAndKey = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn make(names: &[String], purpose: Purpose) -> Result<ChainAndKey, CertificateError> {
    let mut params = rcgen::CertificateParams::new(names)?;
    // Valid from an earlier time, for clocks that are behind.
    params.not_before = OffsetDateTime::now_utc() - Duration::hours(1);
    params.not_after = params.not_before + Duration::days(i64::from(purpose.life_days()));
    let key = rcgen::KeyPair::generate()?;
    let cert = params.self_signed(&key)?;
    Ok((vec![cert.der().clone()], PrivatePkcs8KeyDer::from(key.serialize_der()).into()))
}

fn read(chain_path: &Path, key_path: &Path) -> Result<ChainAndKey, CertificateError> {
    let pem = |path: &Path, what| {
        let path = path.to_owned();
        move |error| CertificateError::Pem { path, what, error }
    };
    let chain = CertificateDer::pem_file_iter(chain_path).and_then(Iterator::collect);
    let chain: Vec<_> = chain.map_err(pem(chain_path, "a certificate chain"))?;
    if chain.is_empty() {
        return Err(pem(chain_path, "a certificate chain")(rustls::pki_types::pem::Error::NoItemsFound));
    }
    let key = PrivateKeyDer::from_pem_file(key_path).map_err(pem(key_path, "a private key"))?;
    let together = CertifiedKey::from_der(chain.clone(), key.clone_key(), &default_provider());
    together.map_err(|error| CertificateError::Unusable {
        chain: chain_path.to_owned(),
        key: key_path.to_owned(),
        error,
    })?;
    Ok((chain, key))
}

/// Whether the content of a file is wrong, rather than that it cannot be read.
fn is_damage(error: &CertificateError) -> bool {
    let cannot_read =
        |error: &CertificateError| matches!(error, CertificateError::Pem { error: PemError::Io(_), .. });
    matches!(error, CertificateError::Pem { .. } | CertificateError::Unusable { .. }) && !cannot_read(error)
}

/// Renames damaged files.
fn set_aside(paths: [&Path; 2], why: &CertificateError) -> Result<(), CertificateError> {
    for path in paths {
        let mut aside = path.as_os_str().to_owned();
        aside.push(".damaged");
        let aside = PathBuf::from(aside);
        fs::rename(path, &aside).map_err(|error| CertificateError::File { path: path.to_owned(), error })?;
        tracing::warn!(file = %path.display(), kept_as = %aside.display(), "a self-signed certificate is damaged and is made anew");
    }
    tracing::warn!(%why, "what was wrong with the certificate; clients that pin it need the new hash");
    Ok(())
}

/// Reads the stored certificate if it is young, otherwise or if it is damaged creates and stores another.
fn keep(folder: &Path, purpose: Purpose, names: &[String]) -> Result<ChainAndKey, CertificateError> {
    let (chain_path, key_path) = kept_files(folder, purpose);
    let age = fs::metadata(&chain_path).and_then(|data| data.modified()).map(|at| at.elapsed());
    if matches!(age, Ok(Ok(age)) if age < purpose.renew_after()) && key_path.exists() {
        match read(&chain_path, &key_path) {
            Err(error) if is_damage(&error) => set_aside([&chain_path, &key_path], &error)?,
            result => return result,
        }
    }
    let (chain, key) = make(names, purpose)?;
    write_pem(&key_path, "PRIVATE KEY", key.secret_der())?;
    write_pem(&chain_path, "CERTIFICATE", &chain[0])?;
    Ok((chain, key))
}

/// The paths of a stored certificate and its key.
pub fn kept_files(folder: &Path, purpose: Purpose) -> (PathBuf, PathBuf) {
    let name = purpose.file_name();
    (folder.join(format!("{name}.cert.pem")), folder.join(format!("{name}.key.pem")))
}

/// Writes a file that only its owner can read, atomically.
fn write_pem(path: &Path, label: &str, der: &[u8]) -> Result<(), CertificateError> {
    let file = |error| CertificateError::File { path: path.to_owned(), error };
    let new = path.with_extension("new");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut open = options.open(&new).map_err(file)?;
    io::Write::write_all(&mut open, pem::encode(&pem::Pem::new(label, der)).as_bytes()).map_err(file)?;
    open.sync_all().map_err(file)?;
    fs::rename(&new, path).map_err(file)
}

/// The settings of a client that authenticates servers by `trust`.
pub fn client_config(trust: Trust, alpn: &[&[u8]]) -> Result<rustls::ClientConfig, rustls::Error> {
    let provider = Arc::new(default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?;
    let mut config = match trust {
        Trust::Public => {
            let roots = rustls::RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            builder.with_root_certificates(roots).with_no_client_auth()
        }
        Trust::Pinned(hash) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Pinned { hash, provider }))
            .with_no_client_auth(),
    };
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

/// Accepts one certificate, whatever name or date it has.
#[derive(Debug)]
struct Pinned {
    hash: CertHash,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if CertHash::of(end_entity) == self.hash {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(TlsCertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::random;

    fn folder() -> PathBuf {
        let folder = std::env::temp_dir().join(format!("sametick-tls-{:016x}", u64::from_le_bytes(random())));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Makes a stored certificate look as old as this.
    fn age(folder: &Path, purpose: Purpose, days: u64) {
        let then = std::time::SystemTime::now() - std::time::Duration::from_secs(days * 86_400);
        let file = fs::File::options().append(true).open(kept_files(folder, purpose).0).unwrap();
        file.set_modified(then).unwrap();
    }

    #[test]
    fn a_stored_certificate_is_renewed_at_half_life_while_in_use() {
        let folder = folder();
        let names = ["localhost".to_owned()];
        let keep = |purpose| Certificate::kept_in(&folder, purpose, &names).unwrap();
        let (native, browsers) = (keep(Purpose::Native), keep(Purpose::Browsers));
        assert_ne!(native.hash(), browsers.hash());
        assert_eq!(keep(Purpose::Browsers).hash(), browsers.hash(), "the same over a restart");
        for purpose in [Purpose::Native, Purpose::Browsers] {
            age(&folder, purpose, 7);
        }
        assert!(!native.renew().unwrap(), "good for years");
        let listener = browsers.clone();
        assert!(browsers.renew().unwrap());
        assert_eq!(listener.hash(), browsers.hash(), "every listener has the new one");
        assert_eq!(keep(Purpose::Browsers).hash(), browsers.hash());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_damaged_stored_certificate_is_set_aside_and_renewed() {
        let folder = folder();
        let names = ["localhost".to_owned()];
        let (chain, key) = kept_files(&folder, Purpose::Native);
        let (_, other_key) = kept_files(&folder, Purpose::Browsers);
        Certificate::kept_in(&folder, Purpose::Browsers, &names).unwrap();
        let damages: [&dyn Fn(); 5] = [
            &|| fs::write(&chain, "no certificate").unwrap(),
            &|| fs::write(&chain, "").unwrap(),
            &|| fs::write(&key, b"\xff\x00\xfe").unwrap(),
            &|| fs::write(&key, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").unwrap(),
            &|| {
                fs::copy(&other_key, &key).unwrap();
            },
        ];
        for (at, damage) in damages.iter().enumerate() {
            let before = Certificate::kept_in(&folder, Purpose::Native, &names).unwrap().hash();
            damage();
            let after = Certificate::kept_in(&folder, Purpose::Native, &names).unwrap();
            assert_ne!(after.hash(), before, "damage {at}");
            for path in [&chain, &key] {
                assert!(path.with_extension("pem.damaged").exists(), "damage {at}: {}", path.display());
            }
            assert_eq!(Certificate::kept_in(&folder, Purpose::Native, &names).unwrap().hash(), after.hash());
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_configured_certificate_that_cannot_be_used_names_its_files() {
        let folder = folder();
        for purpose in [Purpose::Native, Purpose::Browsers] {
            Certificate::kept_in(&folder, purpose, &["localhost".to_owned()]).unwrap();
        }
        let (chain, key) = kept_files(&folder, Purpose::Native);
        let (_, other_key) = kept_files(&folder, Purpose::Browsers);
        let said = Certificate::load(&chain, &other_key).unwrap_err().to_string();
        assert!(said.contains("native.cert.pem") && said.contains("browsers.key.pem"), "{said}");
        fs::write(&key, "").unwrap();
        let said = Certificate::load(&chain, &key).unwrap_err().to_string();
        assert!(said.contains("native.key.pem") && said.contains("a private key"), "{said}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_configured_certificate_is_read_again() {
        let folder = folder();
        let keep = |purpose| Certificate::kept_in(&folder, purpose, &["localhost".to_owned()]).unwrap();
        let (first, second) = (keep(Purpose::Native), keep(Purpose::Browsers));
        let (chain, key) = kept_files(&folder, Purpose::Native);
        let configured = Certificate::load(&chain, &key).unwrap();
        assert_eq!(configured.hash(), first.hash());
        let (new_chain, new_key) = kept_files(&folder, Purpose::Browsers);
        fs::copy(&new_chain, &chain).unwrap();
        assert!(configured.renew().is_err(), "the key does not fit");
        assert_eq!(configured.hash(), first.hash(), "the old one stays");
        fs::copy(&new_key, &key).unwrap();
        assert!(configured.renew().unwrap());
        assert_eq!(configured.hash(), second.hash());
        fs::remove_dir_all(folder).unwrap();
    }
}
