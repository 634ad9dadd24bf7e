/* Detections matched with truths as COCO does it: greedily, from the highest score, in each group of one image and class.
 *
 * Flags of a detection: 1 matched, 2 neither right nor wrong (matched with a truth that is ignored), 0 wrong. */
#include <stdint.h>
#include <string.h>

static double box_intersection(const double *d, const double *g)
{
    double right = d[0] + d[2] < g[0] + g[2] ? d[0] + d[2] : g[0] + g[2];
    double bottom = d[1] + d[3] < g[1] + g[3] ? d[1] + d[3] : g[1] + g[3];
    double width = right - (d[0] > g[0] ? d[0] : g[0]), height = bottom - (d[1] > g[1] ? d[1] : g[1]);
    return width <= 0 || height <= 0 ? 0 : width * height;
}

/* The best of the free truths whose ignored flag is `wanted`, at least as good as `least`; of equals the last; or -1. */
static int64_t best_of(const double *ious, const uint8_t *taken, const uint8_t *crowd, const uint8_t *ignored,
                       int64_t truths, int wanted, double least)
{
    int64_t best = -1;
    for (int64_t g = 0; g < truths; g++) {
        if (ignored[g] != wanted || (taken[g] && !crowd[g]) || ious[g] < least)
            continue;
        least = ious[g];
        best = g;
    }
    return best;
}

/* The matches of one group in one range of areas at one threshold. highest: of each detection, among all its truths. */
static void match_group(uint8_t *flags, const int64_t *places, const double *ious, const double *highest, int64_t rows,
                        int64_t columns, const uint8_t *crowd, const uint8_t *ignored, double least, uint8_t *taken)
{
    memset(taken, 0, (size_t)columns);
    for (int64_t d = 0; d < rows; d++) {
        if (highest[d] < least)
            continue;
        const double *row = ious + d * columns;
        int64_t best = best_of(row, taken, crowd, ignored, columns, 0, least);
        if (best < 0)
            best = best_of(row, taken, crowd, ignored, columns, 1, least);
        if (best < 0)
            continue;
        taken[best] = 1;
        flags[places[d]] = (uint8_t)(1 + ignored[best]);
    }
}

/* The same in all ranges and at all thresholds, where the group has one truth that is no crowd: the first that is good
 * enough has it. */
static void match_one(uint8_t *flags, int64_t detections, const int64_t *places, const double *ious, int64_t rows,
                      const uint8_t *ignored, int64_t truths, int64_t ranges, const double *thresholds, int64_t count)
{
    for (int64_t t = 0; t < count; t++) {
        int64_t d = 0;
        while (d < rows && ious[d] < thresholds[t])
            d++;
        for (int64_t a = 0; d < rows && a < ranges; a++)
            flags[(a * count + t) * detections + places[d]] = (uint8_t)(1 + ignored[a * truths]);
    }
}

/* boxes: left, top, width, height, of detections and truths; or, where `intersections` is not null, none: the pixels that
 * masks d and g share are then at rows[d] + columns[g] in it. areas: of both. starts: (groups + 1). truth_first,
 * truth_stop: (groups). ignored: (areas, truths). flags: (areas, thresholds, detections), of which those that are matched
 * are written; that of detection d is at places[d]. room: for the largest group and its detections. taken: for its truths.
 */
void assay_match(uint8_t *flags, const double *boxes, const double *truth_boxes, const double *areas,
                 const double *truth_areas, const int64_t *intersections, const int64_t *rows_of, const int64_t *columns_of,
                 const int64_t *places, const int64_t *starts, const int64_t *truth_first, const int64_t *truth_stop,
                 int64_t groups, const uint8_t *crowd, const uint8_t *ignored, int64_t truths, int64_t ranges,
                 const double *thresholds, int64_t count, double *room, uint8_t *taken)
{
    int64_t detections = starts[groups];
    for (int64_t k = 0; k < groups; k++) {
        int64_t d0 = starts[k], g0 = truth_first[k], rows = starts[k + 1] - d0, columns = truth_stop[k] - g0;
        if (!rows || !columns)
            continue;
        double *ious = room + rows, best = 0;
        for (int64_t d = 0; d < rows; d++) {
            double highest = 0;
            for (int64_t g = 0; g < columns; g++) {
                double both = intersections
                                  ? (double)intersections[rows_of[d0 + d] + columns_of[g0 + g]]
                                  : box_intersection(boxes + 4 * (d0 + d), truth_boxes + 4 * (g0 + g));
                double whole = crowd[g0 + g] ? areas[d0 + d] : areas[d0 + d] + truth_areas[g0 + g] - both;
                double iou = both > 0 ? both / whole : 0;
                ious[d * columns + g] = iou;
                highest = iou > highest ? iou : highest;
            }
            room[d] = highest;
            best = highest > best ? highest : best;
        }
        if (columns == 1 && !crowd[g0]) {
            match_one(flags, detections, places + d0, ious, rows, ignored + g0, truths, ranges, thresholds, count);
            continue;
        }
        for (int64_t a = 0; a < ranges; a++)
            for (int64_t t = 0; t < count; t++)
                if (best >= thresholds[t])
                    match_group(flags + (a * count + t) * detections, places + d0, ious, room, rows, columns, crowd + g0,
                                ignored + a * truths + g0, thresholds[t], taken);
    }
}

/* How many detections are right, and how many count, at a step of a curve. */
typedef struct {
    int64_t right, all;
} Step;

/* The steps at which there are more hits: no other one has a higher precision at its recall. Returns how many. */
static int64_t steps_of(Step *steps, const uint8_t *flags, const uint8_t *last, int64_t detections)
{
    int64_t count = 0, seen = 0;
    Step step = {0, 0};
    for (int64_t d = 0; d < detections; d++) {
        step.right += flags[d] == 1;
        step.all += flags[d] < 2;
        if (!last[d])
            continue;
        steps[count] = step;
        count += step.right != seen;
        seen = step.right;
    }
    return count;
}

/* The mean over recalls of the highest precision at each recall or above. highest: room for the steps. */
static double mean_precision(const Step *steps, int64_t count, int64_t positives, const double *recalls, int64_t points,
                             double *highest)
{
    for (int64_t i = count - 1; i >= 0; i--) {
        highest[i] = (double)steps[i].right / (double)steps[i].all;
        if (i + 1 < count && highest[i] < highest[i + 1])
            highest[i] = highest[i + 1];
    }
    double sum = 0;
    for (int64_t r = 0, i = 0; r < points && count; r++) {
        while (i < count && (double)steps[i].right / (double)positives < recalls[r])
            i++;
        if (i == count)
            break;
        sum += highest[i];
    }
    return sum / (double)points;
}

static int64_t hits_within(const uint8_t *flags, const uint8_t *within, int64_t detections)
{
    int64_t hits = 0;
    for (int64_t d = 0; d < detections; d++)
        hits += flags[d] & within[d] & 1;
    return hits;
}

/* Average precision, and how many truths are found, of detections sorted by class and falling score.
 *
 * precision: (areas, thresholds, classes), NaN; classes without positives keep it. hits: (areas, limits, classes,
 * thresholds), zeros: how many are matched of the first of each image. flags: (areas, thresholds, detections): 0 wrong, 1
 * right, 2 neither. last: whether a detection is the last of those with its score. within: (limits, detections): whether it
 * is one of the first of its image. starts: (classes + 1). positives: (areas, classes). recalls: increasing. steps, highest:
 * room for the largest class. */
void assay_average_precision(double *precision, int64_t *hits, const uint8_t *flags, const uint8_t *last,
                             const uint8_t *within, int64_t limits, const int64_t *starts, const int64_t *positives,
                             int64_t areas, int64_t thresholds, int64_t classes, const double *recalls, int64_t points,
                             Step *steps, double *highest)
{
    int64_t detections = starts[classes];
    for (int64_t row = 0; row < areas * thresholds; row++)
        for (int64_t k = 0; k < classes; k++) {
            int64_t area = row / thresholds, all = positives[area * classes + k], first = starts[k];
            int64_t length = starts[k + 1] - first;
            const uint8_t *of_class = flags + row * detections + first;
            if (!all)
                continue;
            int64_t count = steps_of(steps, of_class, last + first, length);
            precision[row * classes + k] = mean_precision(steps, count, all, recalls, points, highest);
            for (int64_t m = 0; m < limits && count; m++)
                hits[((area * limits + m) * classes + k) * thresholds + row % thresholds] =
                    hits_within(of_class, within + m * detections + first, length);
        }
}
