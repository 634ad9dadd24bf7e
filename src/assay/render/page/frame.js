// Runs when a notebook has loaded a page into a frame: the frame gets the height of the page, and the page the theme of
// what is behind the frame, as the system may have another one.
const frame = this, page = frame.contentDocument, root = page.documentElement;
let shade = null;
for (let each = frame.parentElement; each && !shade; each = each.parentElement)
  shade = getComputedStyle(each).backgroundColor.match(/^rgb\((\d+), (\d+), (\d+)\)$/);
if (shade) {
  const isDark = 0.299 * shade[1] + 0.587 * shade[2] + 0.114 * shade[3] < 128;
  root.style.colorScheme = isDark ? "dark" : "light";
  for (const rule of page.styleSheets[0].cssRules)
    if (rule.media && rule.media.mediaText.includes("prefers-color-scheme"))
      rule.media.mediaText = isDark ? "screen" : "not all";
}
const fit = () => { frame.style.height = Math.ceil(root.getBoundingClientRect().height) + "px"; };
new ResizeObserver(fit).observe(root);
fit();
