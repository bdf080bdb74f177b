//! The page in a browser: Chromium without a window, where it is installed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use assert_cmd::Command;
use tempfile::TempDir;

use crate::support::compare;

/// A browser, with a profile of its own.
struct Browser {
    program: &'static str,
    profile: TempDir,
}

impl Browser {
    /// The first that is there. Without one, there is nothing to see.
    fn find() -> Option<Self> {
        let is_there = |program: &&str| {
            let found = std::process::Command::new(program).arg("--version").output();
            found.is_ok_and(|output| output.status.success())
        };
        let program = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(is_there);
        if program.is_none() {
            eprintln!("skipped: no Chromium is here; Debian has it as package chromium");
        }
        Some(Self { program: program?, profile: TempDir::new().unwrap() })
    }

    /// What it prints, and what pages said on their consoles.
    fn run(&self, page: &Path, arguments: &[&str]) -> (String, Vec<String>) {
        let mut command = Command::new(self.program);
        command
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
            .args(["--no-first-run", "--disable-background-networking"])
            .args(["--allow-file-access-from-files", "--enable-logging=stderr"])
            .arg(format!("--user-data-dir={}", self.profile.path().display()))
            .args(arguments)
            .arg(format!("file://{}", page.display()))
            .timeout(Duration::from_secs(300));
        let output = command.output().unwrap();
        let [printed, said] = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(output.status.success(), "{said}");
        let console = said.lines().filter(|line| line.contains(":CONSOLE"));
        (printed, console.map(str::to_owned).collect())
    }

    /// The length of a picture of the page.
    fn picture(&self, page: &Path, size: [u32; 2], scheme: &str) -> u64 {
        let picture = self.profile.path().join("picture.png");
        let (shot, size) = (
            format!("--screenshot={}", picture.display()),
            format!("--window-size={},{}", size[0], size[1]),
        );
        self.run(page, &[&shot, &size, scheme]);
        let length = fs::metadata(&picture).unwrap().len();
        fs::remove_file(picture).unwrap();
        length
    }

    /// What a frame of that width finds in the page.
    fn look(&self, page: &Path, width: u32, scheme: &str) -> Found {
        let frame = page.with_file_name("frame.html");
        let name = page.file_name().unwrap().to_str().unwrap();
        fs::write(
            &frame,
            format!(
                "<!DOCTYPE html><iframe src='{name}' style='width:{width}px;height:900px;border:0'>\
                 </iframe><pre></pre><script>\
                 document.querySelector('iframe').onload = function () {{\
                   const page = this.contentDocument, root = page.documentElement;\
                   document.querySelector('pre').textContent = JSON.stringify({{\
                     overflow: root.scrollWidth - root.clientWidth,\
                     background: this.contentWindow.getComputedStyle(page.body).backgroundColor,\
                     captions: [...page.querySelectorAll('table > caption')]\
                       .map(caption => caption.textContent)\
                   }});\
                 }}</script>"
            ),
        )
        .unwrap();
        let wide = ["--window-size=1400,1000", "--virtual-time-budget=10000", "--dump-dom", scheme];
        let (printed, console) = self.run(&frame, &wide);
        let dom = scraper::Html::parse_document(&printed);
        let told = dom.select(&scraper::Selector::parse("pre").unwrap()).next().unwrap();
        let told: serde_json::Value =
            serde_json::from_str(&told.text().collect::<String>()).unwrap();
        Found {
            overflow: told["overflow"].as_i64().unwrap(),
            background: told["background"].as_str().unwrap().to_owned(),
            captions: serde_json::from_value(told["captions"].clone()).unwrap(),
            console,
        }
    }
}

#[derive(Debug, PartialEq)]
struct Found {
    /// Pixels that the page is wider than its window.
    overflow: i64,
    background: String,
    captions: Vec<String>,
    console: Vec<String>,
}

const LIGHT: &str = "--blink-settings=preferredColorScheme=1";
const DARK: &str = "--blink-settings=preferredColorScheme=0";

#[test]
fn a_browser_shows_the_page() {
    let Some(browser) = Browser::find() else { return };
    let directory = TempDir::new().unwrap();
    let page = directory.path().join("page.html");
    let mix = "-p recordcount=2000 -p operationcount=2000 --core a";
    let words = ["ycsb", "--engines", "bitcask,lsm,memory", "--repeats", "3", "--quiet", "--html"];
    let words = words.into_iter().chain([page.to_str().unwrap()]).chain(mix.split(' '));
    compare(directory.path(), &words.collect::<Vec<_>>()).assert().success();

    let source = scraper::Html::parse_document(&fs::read_to_string(&page).unwrap());
    let captions = scraper::Selector::parse("table > caption").unwrap();
    let captions: Vec<String> =
        source.select(&captions).map(|caption| caption.text().collect()).collect();
    assert!(captions.len() > 5, "{captions:?}");
    let mut backgrounds = Vec::new();
    for scheme in [LIGHT, DARK] {
        for width in [1_200, 500] {
            let found = browser.look(&page, width, scheme);
            backgrounds.push(found.background.clone());
            let (background, captions) = (found.background.clone(), captions.clone());
            let expected = Found { overflow: 0, background, captions, console: Vec::new() };
            assert_eq!(found, expected, "{width} {scheme}");
        }
        // A picture of nothing is packed into next to nothing.
        let nothing = directory.path().join("nothing.html");
        fs::write(&nothing, "<!DOCTYPE html><title>nothing</title>").unwrap();
        for size in [[1_200, 2_000], [500, 2_000]] {
            let [shown, blank] = [&page, &nothing].map(|page| browser.picture(page, size, scheme));
            assert!(shown > 10 * blank, "{size:?} {scheme}: {shown} bytes, blank {blank}");
        }
    }
    assert_eq!(backgrounds[0], backgrounds[1]);
    assert_eq!(backgrounds[2], backgrounds[3]);
    assert_ne!(backgrounds[0], backgrounds[2], "light and dark");
}

/// What the other test asks for is told where it is not so.
#[test]
fn a_browser_tells_what_is_wrong_with_a_page() {
    let Some(browser) = Browser::find() else { return };
    let directory = TempDir::new().unwrap();
    let page = directory.path().join("page.html");
    let wrong = "<!DOCTYPE html><body style='background: #123456'>\
                 <div style='width: 700px'>wide</div><script>console.error('alas')</script>";
    fs::write(&page, wrong).unwrap();
    let found = browser.look(&page, 500, LIGHT);
    assert!(found.overflow >= 200, "{found:?}");
    assert_eq!(found.background, "rgb(18, 52, 86)");
    assert!(found.console.iter().any(|line| line.contains("alas")), "{found:?}");
}
